// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/workload"
)

// scaleFacts is what the number of pods depends on.
type scaleFacts struct {
	// members are in the order of updates.
	members []*member
	// away is how many of the missing pods are not made before something else has ended.
	away int
	// replicas is the number of pods wanted, surge how many more there may be,
	// maxUnavailable how many of them may be unavailable by our deletions.
	replicas, surge, maxUnavailable int
	// partition is how many pods stay at the current revision.
	partition int
	// stopped: no pod may start its update. paused: that is for a while.
	stopped, paused bool
	// limit is how many pods may be starting; negative for no limit.
	limit int
}

// scalePlan is what to create and delete now.
type scalePlan struct {
	// atUpdate and atCurrent are how many pods to create at each revision, with those that
	// are away.
	atUpdate, atCurrent int
	// withheld is how many more are to be created when others have started.
	withheld int
	// remove are the members to delete now, in this order; waiting are those to
	// delete when enough others are available.
	remove, waiting []*member
	// wanted is how many pods there are to be for now.
	wanted int
}

// lacksPods reports whether there are fewer pods than there are to be.
func (p *scalePlan) lacksPods() bool { return p.atUpdate+p.atCurrent+p.withheld > 0 }

// planScale decides how many pods are created now, and which are deleted for good.
// Pods beyond replicas are as many as are about to be taken out of service, as far
// as surge allows.
func planScale(f scaleFacts) scalePlan {
	plan := scalePlan{wanted: f.replicas + f.surging()}
	switch missing := plan.wanted - len(f.members); {
	case missing > 0:
		plan.create(f, missing)
	case missing < 0:
		plan.delete(f, -missing)
	}
	return plan
}

// surging returns how many pods there are to be beyond replicas. Broken ones that
// stay at their revision make up for nothing: they make way for others when no place is left.
func (f scaleFacts) surging() int {
	if f.stopped {
		return 0
	}
	needed := 0
	for _, m := range f.members {
		if m.surges {
			needed++
		}
	}
	surging := min(needed, f.surge)
	if len(f.members) < f.replicas+surging {
		return surging
	}
	held, useless := hold(f.members, f.replicas, f.partition, 0).held, 0
	for _, m := range f.members {
		if m.broken && held.Has(m.Name) {
			useless++
		}
	}
	return surging - min(surging, useless)
}

// create plans creations, as far as the limit allows. Lost and broken pods, and those
// that serve until they may be updated or deleted, are nothing to wait for: a creation
// takes nothing away, and may be what they need to recover, or what their budget waits for.
//
// Pods that replace missing ones have the revision that those would have; pods
// beyond that are there for the update, and have its revision as far as the
// partition leaves room for it. The others stand in at the current revision.
func (p *scalePlan) create(f scaleFacts, missing int) {
	count := missing
	if f.limit >= 0 {
		starting := 0
		for _, m := range f.members {
			if !m.available && !m.broken && !m.yields {
				starting++
			}
		}
		count = min(missing, max(f.limit-starting, 0)+f.away)
	}
	places := hold(f.members, f.replicas, f.partition, 0)
	early := min(count, places.freeVacant)
	p.atCurrent = min(count-early, places.heldVacant)
	if f.partition > 0 {
		p.atCurrent = max(p.atCurrent, count-early-f.roomToSurge(early))
	}
	p.atUpdate = count - p.atCurrent
	p.withheld = missing - count
}

// roomToSurge returns how many pods beyond replicas the partition allows at the
// update revision, besides early ones that replace missing pods. They may take the
// places of old pods, and of updated pods that are about to be recreated. They may
// not take the place of an updated pod that comes back from a change in place.
func (f scaleFacts) roomToSurge(early int) int {
	room := f.replicas - f.partition - early
	for _, m := range f.members {
		if m.turn == workload.Updated && !m.asked && (m.returns || !m.surges) {
			room--
		}
	}
	return max(room, 0)
}

// delete plans deletions. Pods that do not serve are deleted freely, others as long as
// enough stay available.
func (p *scalePlan) delete(f scaleFacts, surplus int) {
	spare := f.maxUnavailable - f.replicas
	for _, m := range f.members {
		if m.available {
			spare++
		}
	}
	for _, m := range f.inDeletionOrder()[:surplus] {
		switch {
		case !m.serves:
			p.remove = append(p.remove, m)
		case !m.available && spare >= 0:
			p.remove = append(p.remove, m) // enough others are available
		case spare > 0:
			spare--
			p.remove = append(p.remove, m)
		default:
			p.waiting = append(p.waiting, m)
		}
	}
}

// places are what there is room for at each revision.
type places struct {
	// held are the names of the members that stay at their revision.
	held sets.Set[string]
	// freeVacant and heldVacant are how many of the missing pods are to be made at
	// the update revision, and at the current one.
	freeVacant, heldVacant int
}

// hold gives out the places at both revisions to the members and to the pods that
// are missing. A pod that a user asks to be deleted keeps no place: what comes
// after it does. Pods that are being made at the update revision have theirs.
func hold(members []*member, replicas, partition, made int) places {
	p := places{held: sets.New[string]()}
	var staying []*member
	var turns []workload.Turn
	for _, m := range members {
		if !m.asked {
			staying, turns = append(staying, m), append(turns, m.turn)
		}
	}
	vacant := max(replicas-len(staying)-made, 0)
	isHeld, free := workload.HeldByNumber(turns, vacant, replicas-partition-made)
	for i, m := range staying {
		if isHeld[i] {
			p.held.Insert(m.Name)
		}
	}
	p.freeVacant, p.heldVacant = free, vacant-free
	return p
}
