// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// scaleFacts is what the order of creation and deletion depends on.
type scaleFacts struct {
	// ordinals are the wanted ordinals, ascending.
	ordinals []int
	// members and condemned are sorted by ordinal, ascending.
	members, condemned []*member
	// gated are the ordinals whose pods are neither created nor deleted now.
	gated sets.Set[int]
	// ordered is true for podManagementPolicy OrderedReady.
	ordered bool
	// limit is how many pods may be starting, and unavailable by deletions; negative for
	// no limit.
	limit int
	now   time.Time
}

// scalePlan is what to create and delete now.
type scalePlan struct {
	// create are the ordinals of pods to create, in this order; withheld is how many more
	// are to be created when others have started.
	create   []int
	withheld int
	// remove are the pods to delete, in this order.
	remove []*member
	// waits is a pod that is to go and stays until awaited is healthy; both are nil if
	// none does.
	waits, awaited *member
}

// planScale decides which pods are created and deleted now. A pod that has ended
// is deleted, to be created again.
//
// Source of the order: StatefulSet deployment and scaling guarantees.
func planScale(f scaleFacts) scalePlan {
	if f.ordered {
		return planOrdered(f)
	}
	return planParallel(f)
}

// planOrdered creates one pod at a time, each after those before it are ready,
// and deletes one at a time, the highest first, while all that stay are ready. Of those
// that are to go, one that is not healthy waits for those below it to be healthy, but for
// those that do not come back. One that a hook has given up holds up deletions only, see
// workload.Yields.
func planOrdered(f scaleFacts) scalePlan {
	pods, yields := byOrdinal(f.members), false
	for _, ordinal := range f.ordinals {
		m := pods[ordinal]
		switch {
		case m == nil:
			return scalePlan{create: []int{ordinal}}
		case inplace.HasEnded(m.Pod):
			return scalePlan{remove: []*member{m}}
		case m.yields:
			yields = true
		case !m.healthy:
			return scalePlan{}
		}
	}
	if len(f.condemned) == 0 || yields {
		return scalePlan{}
	}
	last := f.condemned[len(f.condemned)-1]
	if last.DeletionTimestamp != nil {
		return scalePlan{}
	}
	mayRecover := func(m *member) bool { return !m.healthy && !m.isHeldForDeletion() && !inplace.HasEnded(m.Pod) }
	first := slices.IndexFunc(f.condemned, mayRecover)
	if mayRecover(last) && f.condemned[first] != last {
		return scalePlan{waits: last, awaited: f.condemned[first]}
	}
	return scalePlan{remove: []*member{last}}
}

// planParallel creates and deletes all at once, as far as the limit allows.
//
// Lost pods are nothing to wait for. Broken pods, those that end, those that a hook has given
// up and that serve, and those that are to go and are held by it hold up deletions only: a
// creation takes nothing away, and may be what broken pods need to recover.
func planParallel(f scaleFacts) scalePlan {
	plan := scalePlan{}
	pods := byOrdinal(f.members)
	starting, still := 0, 0
	for _, m := range slices.Concat(f.members, f.condemned) {
		switch {
		case m.healthy || inplace.IsLost(m.Pod, f.now):
		case inplace.IsBroken(m.Pod), m.DeletionTimestamp != nil, m.yields, m.isHeldForDeletion() && pods[m.ordinal] != m:
			still++
		default:
			starting++
		}
		if inplace.HasEnded(m.Pod) {
			plan.remove = append(plan.remove, m)
		}
	}
	busy := starting
	mayDisturb := func() bool {
		busy++
		return f.limit < 0 || busy <= f.limit
	}
	for _, ordinal := range f.ordinals {
		switch {
		case pods[ordinal] != nil, f.gated.Has(ordinal):
		case mayDisturb():
			plan.create = append(plan.create, ordinal)
		default:
			plan.withheld++
		}
	}
	busy += still
	for _, m := range slices.Backward(f.condemned) {
		if m.DeletionTimestamp == nil && !inplace.HasEnded(m.Pod) && (!m.healthy || mayDisturb()) {
			plan.remove = append(plan.remove, m)
		}
	}
	return plan
}

func byOrdinal(members []*member) map[int]*member {
	pods := make(map[int]*member, len(members))
	for _, m := range members {
		pods[m.ordinal] = m
	}
	return pods
}

// scale creates and deletes the pods whose turn it is. What fails with one pod
// does not keep the others from being updated.
func (r *Reconciler) scale(ctx context.Context, s *scope) error {
	limit := -1
	if limited, ok := s.set.GetScaleMaxUnavailable(); ok {
		limit = int(limited)
	}
	gated := sets.New[int]()
	for name := range s.gated {
		if ordinal, ok := ordinalOf(s.set.Name, name); ok {
			gated.Insert(ordinal)
		}
	}
	plan := planScale(scaleFacts{
		ordinals: s.ordinals, members: s.members, condemned: s.condemned, gated: gated, limit: limit,
		ordered: s.set.GetPodManagementPolicy() == appsv1.OrderedReadyPodManagement, now: s.Now,
	})
	if plan.waits != nil {
		s.lingering = []*member{plan.awaited, plan.waits}
		s.waiting = append(s.waiting, inplace.Blocker{
			Pod: plan.waits.Pod, State: inplace.Waiting, Reason: inplace.ReasonScaleIn,
			Message: fmt.Sprintf("podManagementPolicy OrderedReady: it is not healthy, and is deleted when pod %s is", plan.awaited.Name),
		})
	}
	if s.withheld = plan.withheld; plan.withheld > 0 {
		s.withheld += s.replicas - len(s.ordinals) // they are not looked at now
	}
	workload.ReportWithheld(r.Recorder, s.set, s.withheld)
	plan = s.ungatedScale(plan)
	r.createPods(ctx, s, plan.create)
	for _, m := range s.members {
		if m.Status.Phase == corev1.PodPending && m.DeletionTimestamp == nil {
			s.Scaling.Add(r.ensureClaimsOf(ctx, s, m))
		}
	}
	for _, m := range plan.remove {
		s.Scaling.Add(r.Pods.Remove(ctx, s.Owner, m.Pod, s.target(), s.Now))
	}
	return nil
}

func (r *Reconciler) createPods(ctx context.Context, s *scope, ordinals []int) {
	ordinals = ordinals[:min(len(ordinals), workload.MaxCreations)]
	target, pods := s.target(), make([]workload.NewPod, 0, len(ordinals))
	for _, ordinal := range ordinals {
		revision := s.revisionFor(ordinal)
		pod, err := newPod(s.set, revision, ordinal)
		if err != nil {
			s.Scaling.Add(err)
			continue
		}
		inplace.PrepareNew(pod, target, s.Now)
		pods = append(pods, workload.NewPod{Pod: pod, Claims: newClaims(s.set, revision, ordinal), MayMake: s.cleared.Has})
	}
	s.Scaling.Errs = append(s.Scaling.Errs, r.Pods.Create(ctx, s.Owner, pods)...)
}

// ensureClaimsOf makes the claims again that a pod waits for: one that was
// deleted would keep its pod pending for ever.
func (r *Reconciler) ensureClaimsOf(ctx context.Context, s *scope, m *member) error {
	revision := s.Revisions.Of(m.Pod)
	if revision == nil {
		revision = s.Revisions.Update
	}
	wanted := slices.DeleteFunc(workload.ClaimsOf(m.Pod, newClaims(s.set, revision, m.ordinal)), func(claim *corev1.PersistentVolumeClaim) bool {
		return s.claims.Get(claim.Name) == nil && !s.cleared.Has(claim.Name) // see renewClaims
	})
	return workload.EnsureClaims(ctx, r.Client, s.Owner, wanted, s.cleared.Has)
}
