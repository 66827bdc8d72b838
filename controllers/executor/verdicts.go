// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	// enoughNodes is how many nodes speak for all.
	enoughNodes = 5
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
	v := &verdicts{
		revision: revision, byChange: map[string]*verdict{}, successors: map[string]successorAnswer{},
		toldDenials: sets.New[string](), injections: map[string]injectionAnswer{}, toldInjections: sets.New[string](),
		pulls: map[string]*pullKnowledge{}, pulled: sets.New[string](),
	}
	m.workloads.Add(workload, v)
	return v
}

// verdicts are what is known of the changes to one revision.
type verdicts struct {
	revision string
	byChange map[string]*verdict
	drain    drainVerdict
	// successors is what was said of new pods in the places of others, by their revision.
	successors map[string]successorAnswer
	// toldDenials are the revisions at which no new pods are accepted, of which that was told.
	toldDenials sets.Set[string]
	// injections is what was said of the containers that admission puts into new pods, by the
	// revision of those that there are; toldInjections is what was told of it.
	injections     map[string]injectionAnswer
	toldInjections sets.Set[string]
	// pulls is what is known of those that pods need, by their keys.
	pulls map[string]*pullKnowledge
	// pulled are the images by node that are not waited for any more.
	pulled sets.Set[string]
	// noPullers: the API server takes no pods that pull, for so long that none is waited for.
	// noRejected: a kubelet does not, so that those of other nodes that do not are not waited for.
	noPullers, noRejected bool
	// unanswered is on how many nodes no kubelet has answered in time.
	unanswered int
}

// on returns the verdict on a change, which is the same for all pods that need
// it.
func (v *verdicts) on(change inplace.Change) *verdict {
	key := change.Key()
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
		if pods[i].Refused != nil || !pod.Step.LeadsToPatch {
			continue
		}
		pods[i].Refused = v.on(pod.Step.Change).refusal(pod.Pod, now)
		marked = marked || pods[i].Refused != nil
	}
	return marked
}

func (v *verdicts) hasWitnesses() bool {
	for _, known := range v.byChange {
		if len(known.witnesses)+len(known.nodes) > 0 {
			return true
		}
	}
	return false
}

// mustTry reports whether a move needs a dry run first: it is about to take a pod
// out of service, or to write twice, or its change was refused before. So does one that
// restarts a container by another spelling of its image: where admission spells that as
// before, the pod would wait for a restart that never comes.
func (v *verdicts) mustTry(move inplace.Move) bool {
	if !move.Step.LeadsToPatch {
		return false
	}
	known := v.on(move.Step.Change)
	switch {
	case known.isWitness(move.Pod):
		return true
	case known.accepted:
		return false
	default:
		return move.Step.Action != inplace.Patch || len(known.witnesses) > 0 ||
			slices.ContainsFunc(slices.Concat(move.Step.Change.Images, move.Step.Change.Later), respells)
	}
}

// untried returns the moves to try now, one for each change. Of one that nodes were
// too small for, it is one for each node.
func (v *verdicts) untried(moves []inplace.Move) []inplace.Move {
	type question struct {
		about *verdict
		node  string
	}
	var found []inplace.Move
	seen := map[question]bool{}
	for _, move := range moves {
		if !v.mustTry(move) {
			continue
		}
		q := question{about: v.on(move.Step.Change)}
		if len(q.about.nodes) > 0 {
			q.node = move.Pod.Spec.NodeName
		}
		if !seen[q] {
			seen[q] = true
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
	// nodes holds those whose pods were refused for what the node is, which says
	// nothing of other nodes until enoughNodes have said so.
	nodes map[string]node
	// surprises counts how often in a row the server refused a change whose dry
	// run it had accepted.
	surprises int
}

// witness is a pod whose change was refused.
type witness struct {
	pod     types.UID
	refusal *inplace.Refusal
}

// node is one that cannot hold a pod after its change.
type node struct {
	refusal *inplace.Refusal
	// times is how often in a row.
	times int
}

// refusal returns why the change of a pod is refused, nil if that is not known:
// it was refused itself, or all pods that were asked for.
func (v *verdict) refusal(pod *corev1.Pod, now time.Time) *inplace.Refusal {
	if refused := v.refusalOnNode(pod.Spec.NodeName, now); refused != nil {
		return refused
	}
	var lately []witness
	for _, w := range v.witnesses {
		if now.Before(w.refusal.Until) {
			lately = append(lately, w)
		}
	}
	for _, w := range lately {
		if w.pod == pod.UID {
			return w.refusal
		}
	}
	if v.accepted || len(lately) < enoughWitnesses {
		return nil
	}
	return lately[0].refusal
}

// refusalOnNode returns why pods on a node are refused for what the node is; nil if
// that is not known.
func (v *verdict) refusalOnNode(name string, now time.Time) *inplace.Refusal {
	if known, ok := v.nodes[name]; ok && now.Before(known.refusal.Until) {
		return known.refusal
	}
	if v.accepted {
		return nil
	}
	var lately []*inplace.Refusal
	for _, known := range v.nodes {
		if now.Before(known.refusal.Until) {
			lately = append(lately, known.refusal)
		}
	}
	if len(lately) < enoughNodes {
		return nil
	}
	return slices.MinFunc(lately, func(a, b *inplace.Refusal) int { return a.Until.Compare(b.Until) })
}

func (v *verdict) isWitness(pod *corev1.Pod) bool {
	_, onNode := v.nodes[pod.Spec.NodeName]
	return onNode || slices.ContainsFunc(v.witnesses, func(w witness) bool { return w.pod == pod.UID })
}

func (v *verdict) accept(pod *corev1.Pod) {
	v.accepted = true
	delete(v.nodes, pod.Spec.NodeName)
	v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return w.pod == pod.UID })
}

// refuse notes a refusal for a period. While there are enough witnesses, others
// are not called: the same pods say the same each time.
func (v *verdict) refuse(pod *corev1.Pod, refused inplace.Refusal, now time.Time, period time.Duration) {
	if refused.Reason == inplace.ReasonResizeInfeasible {
		v.refuseOnNode(pod.Spec.NodeName, refused, now)
		return
	}
	v.accepted = false
	v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return w.pod == pod.UID })
	if len(v.witnesses) == enoughWitnesses {
		v.witnesses = slices.DeleteFunc(v.witnesses, func(w witness) bool { return !now.Before(w.refusal.Until) })
	}
	refused.Until = now.Add(period)
	v.witnesses = append(v.witnesses, witness{pod: pod.UID, refusal: &refused})
	v.witnesses = v.witnesses[:min(len(v.witnesses), enoughWitnesses)]
}

// refuseOnNode notes a refusal for what a node is. Nodes seldom change, so they are
// asked about less and less often.
func (v *verdict) refuseOnNode(name string, refused inplace.Refusal, now time.Time) {
	if v.nodes == nil {
		v.nodes = map[string]node{}
	}
	times := v.nodes[name].times
	refused.Until = now.Add(refusalPeriod << min(times, maxDoublings))
	v.nodes[name] = node{refusal: &refused, times: times + 1}
}

// surprisePeriod returns how long the refusal of a write is taken as it is. A pod
// was drained for it: where dry runs do not tell, that happens less and less often.
func (v *verdict) surprisePeriod() time.Duration {
	if v.accepted {
		v.surprises++
	}
	return refusalPeriod << min(max(v.surprises-1, 0), maxDoublings)
}
