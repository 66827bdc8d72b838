// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"
	"k8s.io/utils/lru"

	"github.com/insitu-dev/insitu/inplace"
)

const (
	// refusalPeriod is how long a refusal is taken as it is. Policies and
	// webhooks change without an event on the workload or its pods.
	refusalPeriod = 15 * time.Second
	// maxDoublings limits how far the period grows, to 8 minutes.
	maxDoublings = 5
	// enoughWitnesses is how many refused pods speak for all that need the same
	// change. One may be refused for what it is itself.
	enoughWitnesses = 2
	// rememberedWorkloads is for how many workloads verdicts are kept.
	rememberedWorkloads = 4096
)

// memory keeps what the API server said of changes, so that it need not be asked
// again. What is lost is asked again.
type memory struct {
	workloads *lru.Cache
}

func newMemory() memory {
	return memory{workloads: lru.New(rememberedWorkloads)}
}

// verdictsOn returns what is known of the changes of a workload's pods to a
// revision. Those to another revision are forgotten: the next time that it is
// the target, the policies may be others.
func (m memory) verdictsOn(workload types.UID, revision string) *verdicts {
	if known, ok := m.workloads.Get(workload); ok {
		if v, ok := known.(*verdicts); ok && v.revision == revision {
			return v
		}
	}
	v := &verdicts{revision: revision, byChange: map[string]*verdict{}}
	m.workloads.Add(workload, v)
	return v
}

// verdicts are what is known of the changes to one revision.
type verdicts struct {
	revision string
	byChange map[string]*verdict
}

// on returns the verdict on a change, which is the same for all pods that need
// it.
func (v *verdicts) on(change inplace.Change) *verdict {
	key := dump.ForHash(change)
	if v.byChange[key] == nil {
		v.byChange[key] = &verdict{}
	}
	return v.byChange[key]
}

// mark sets Refused of those pods whose change is known to be refused, and
// reports whether there was one that was not marked yet.
func (v *verdicts) mark(pods []inplace.PodFacts, plan inplace.Plan, now time.Time) bool {
	marked := false
	if !v.hasWitnesses() {
		return false // nearly always; thousands of changes need not be looked up
	}
	for i, pod := range plan.Pods {
		if pods[i].Refused != nil || !pod.Step.LeadsToPatch() {
			continue
		}
		pods[i].Refused = v.on(pod.Step.Change).refusal(pod.Pod.UID, now)
		marked = marked || pods[i].Refused != nil
	}
	return marked
}

func (v *verdicts) hasWitnesses() bool {
	for _, known := range v.byChange {
		if len(known.witnesses)+len(known.alone) > 0 {
			return true
		}
	}
	return false
}

// mustTry reports whether a move needs a dry run first: it is about to take a pod
// out of service, or to write twice, or its change was refused before.
func (v *verdicts) mustTry(move inplace.Move) bool {
	if !move.Step.LeadsToPatch() {
		return false
	}
	known := v.on(move.Step.Change)
	switch {
	case known.isWitness(move.Pod.UID):
		return true
	case known.accepted:
		return false
	default:
		return move.Step.Action != inplace.Patch || len(known.witnesses) > 0
	}
}

// untried returns the moves to try now, one for each change.
func (v *verdicts) untried(moves []inplace.Move) []inplace.Move {
	var found []inplace.Move
	seen := map[*verdict]bool{}
	for _, move := range moves {
		if !v.mustTry(move) {
			continue
		}
		if known := v.on(move.Step.Change); !seen[known] {
			seen[known] = true
			found = append(found, move)
		}
	}
	return found
}

// verdict is what is known of one change.
type verdict struct {
	// accepted: the server accepted the change of the pod that was asked for last.
	accepted bool
	// witnesses are the pods whose change was refused, the earliest first.
	witnesses []witness
	// alone holds the pods that were refused for the nodes that they are on, which
	// says nothing of others.
	alone map[types.UID]loner
	// surprises counts how often in a row the server refused a change whose dry
	// run it had accepted.
	surprises int
}

// witness is a pod whose change was refused.
type witness struct {
	pod     types.UID
	refusal *inplace.Refusal
}

// loner is a pod that was refused for its node.
type loner struct {
	refusal *inplace.Refusal
	// times is how often in a row.
	times int
}

// refusal returns why the change of a pod is refused, nil if that is not known:
// it was refused itself, or all pods that were asked for.
func (v *verdict) refusal(pod types.UID, now time.Time) *inplace.Refusal {
	if known, ok := v.alone[pod]; ok && now.Before(known.refusal.Until) {
		return known.refusal
	}
	var lately []witness
	for _, w := range v.witnesses {
		if now.Before(w.refusal.Until) {
			lately = append(lately, w)
		}
	}
	for _, w := range lately {
		if w.pod == pod {
			return w.refusal
		}
	}
	if v.accepted || len(lately) < enoughWitnesses {
		return nil
	}
	return lately[0].refusal
}

func (v *verdict) isWitness(pod types.UID) bool {
	_, alone := v.alone[pod]
	return alone || slices.ContainsFunc(v.witnesses, func(w witness) bool { return w.pod == pod })
}

func (v *verdict) accept(pod types.UID) {
	v.accepted = true
	delete(v.alone, pod)
	v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return w.pod == pod })
}

// refuse notes a refusal for a period. While there are enough witnesses, others
// are not called: the same pods say the same each time.
func (v *verdict) refuse(pod types.UID, refused inplace.Refusal, now time.Time, period time.Duration) {
	if refused.Reason == inplace.ReasonResizeInfeasible {
		v.refuseAlone(pod, refused, now)
		return
	}
	v.accepted = false
	v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return w.pod == pod })
	if len(v.witnesses) == enoughWitnesses {
		v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return !now.Before(w.refusal.Until) })
	}
	refused.Until = now.Add(period)
	v.witnesses = append(v.witnesses, witness{pod: pod, refusal: &refused})
	v.witnesses = v.witnesses[:min(len(v.witnesses), enoughWitnesses)]
}

// refuseAlone notes a refusal for what the node of a pod is. Nodes seldom change, so
// the pod is asked for less and less often.
func (v *verdict) refuseAlone(pod types.UID, refused inplace.Refusal, now time.Time) {
	if v.alone == nil {
		v.alone = map[types.UID]loner{}
	}
	times := v.alone[pod].times
	refused.Until = now.Add(refusalPeriod << min(times, maxDoublings))
	v.alone[pod] = loner{refusal: &refused, times: times + 1}
}

// surprisePeriod returns how long the refusal of a write is taken as it is. A pod
// was drained for it: where dry runs do not tell, that happens less and less often.
func (v *verdict) surprisePeriod() time.Duration {
	if v.accepted {
		v.surprises++
	}
	return refusalPeriod << min(max(v.surprises-1, 0), maxDoublings)
}
