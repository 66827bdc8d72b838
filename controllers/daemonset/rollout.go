// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// place makes pods on nodes that have none, lets those go that are too many, and decides whose
// turn it is. What fails on one node does not keep the others from being worked on.
func (r *Reconciler) place(ctx context.Context, s *scope) error {
	mark := s.Revisions.MarkOf(s.Revisions.Update)
	surge := 0
	if !s.isStopped() {
		surge = s.set.GetMaxSurge(s.desired)
	}
	s.placed = planNodes(placeFacts{
		nodes: s.nodes, mark: mark, surges: s.set.GetMaxSurge(s.desired), burst: s.set.GetBurst(s.desired), mayCreate: s.mayCreate(mark),
		mayReplace: func(node string) bool { return r.mayReplace(s, node) }, lifecycle: s.set.Spec.Lifecycle.OrNil(), minReadySeconds: s.set.Spec.MinReadySeconds,
		now: s.Now,
	})
	s.takeTurns(mark)
	create := slices.Concat(s.placed.create, s.surgeNodes(mark, surge))
	create = create[:min(len(create), s.set.GetBurst(s.desired), workload.MaxCreations)]
	pods := make([]workload.NewPod, 0, len(create))
	for _, node := range create {
		pod, err := r.newPod(s, node)
		if err != nil {
			return err
		}
		pods = append(pods, workload.NewPod{Pod: pod, MadeUp: true})
	}
	s.Scaling.Errs = append(s.Scaling.Errs, r.Pods.Create(ctx, s.Owner, pods)...)
	for _, pod := range s.placed.remove {
		s.Scaling.Add(r.Pods.Remove(ctx, s.Owner, pod, s.target(), s.Now))
	}
	for _, pod := range s.placed.failed {
		r.failed.GC()
		r.failed.Next(backoffID(s.set, targetOf(pod)), s.Now)
	}
	return nil
}

// mayCreate returns how many nodes without a pod may get one: with partitionedScaling no more
// than the partition leaves room for. It is negative for all.
func (s *scope) mayCreate(mark string) int {
	if !s.set.HasPartitionedScaling() {
		return -1
	}
	updated := 0
	for _, pod := range s.Pods {
		if pod.DeletionTimestamp == nil && inplace.RevisionOf(pod) == mark {
			updated++
		}
	}
	return max(s.desired-updated-s.set.GetPartition(s.desired), 0)
}

// mayReplace reports whether another pod may be made on a node whose pod has failed.
func (r *Reconciler) mayReplace(s *scope, node string) bool {
	id := backoffID(s.set, node)
	if r.failed.IsInBackOffSinceUpdate(id, s.Now) {
		s.Requeue.Within(r.failed.Get(id))
		return false
	}
	return true
}

func backoffID(set *appsv1beta1.DaemonSet, node string) string { return string(set.UID) + "/" + node }

// newPod returns the pod for a node, at the update revision.
func (r *Reconciler) newPod(s *scope, node string) (*corev1.Pod, error) {
	const length = 5
	pod, err := workload.PodFrom(s.Revisions.InPlace(s.Revisions.Update), s.Owner, s.set.Name+"-"+r.random(length))
	if err != nil {
		return nil, err
	}
	if generation := s.set.Annotations[appsv1.DeprecatedTemplateGeneration]; generation != "" {
		pod.Labels[templateGenerationLabel] = generation
	}
	aim(&pod.Spec, node)
	inplace.PrepareNew(pod, s.target(), s.Now)
	return pod, nil
}

// templateGenerationLabel is on pods of a set that was one before Kubernetes had revisions.
const templateGenerationLabel = "pod-template-generation"

// takeTurns orders the nodes that are to run a pod, and counts those whose turn it is.
func (s *scope) takeTurns(mark string) {
	pods := map[string]*corev1.Pod{}
	for _, pod := range s.placed.staying {
		pods[targetOf(pod)] = pod
	}
	surging := sets.New[string]()
	for _, pod := range s.placed.awaited {
		surging.Insert(targetOf(pod))
	}
	s.turns = nil
	for _, n := range s.nodes {
		if n.runs || n.keeps && pods[n.name] != nil {
			s.turns = append(s.turns, turn{node: n.name, labels: s.known[n.name].Labels, runs: n.runs, pod: pods[n.name], surges: surging.Has(n.name)})
		}
	}
	partition := 0
	if s.Revisions.Update != s.Revisions.Current || s.isInferred { // else the user has gone back
		partition = s.partition()
	}
	s.turns, s.released = inUpdateOrder(s.turns, mark, s.selector, partition)
}

// partition returns how many nodes stay at the current revision: those with a pod that a taint only
// keeps from getting another are among those that it is a share of.
func (s *scope) partition() int { return s.set.GetPartition(len(s.turns)) }

// surgeNodes returns on which nodes a pod is made beside the old one. One that does not serve
// needs none of the places; one that has just begun to serve does, so that two updates within
// minReadySeconds surge on no more nodes than one.
func (s *scope) surgeNodes(mark string, surge int) []string {
	if surge == 0 {
		return nil
	}
	several := sets.New[string]()
	for _, n := range s.nodes {
		living := slices.DeleteFunc(slices.Clone(n.pods), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || inplace.HasEnded(pod) })
		if len(living) > 1 {
			several.Insert(n.name)
		}
	}
	var nodes []string
	busy := several.Len()
	for _, t := range s.turns[:s.released] {
		switch {
		case t.group(mark) != isOld, !t.runs, several.Has(t.node), whyNotNow(s.known[t.node]) != "":
		case !workload.IsHealthy(t.pod, s.set.Spec.Lifecycle.OrNil(), 0, s.Now):
			nodes = append(nodes, t.node)
		case busy < surge:
			busy++
			nodes = append(nodes, t.node)
		}
	}
	return nodes
}

// update lets the pods that stay take their next steps towards their revisions.
func (r *Reconciler) update(ctx context.Context, s *scope) error {
	asked := inplace.Workload{
		Target: s.target(), Current: new(s.Revisions.InPlace(s.Revisions.Update)), // so are new pods, whatever the partition keeps
		MaxUnavailable: max(s.set.GetMaxUnavailable(s.desired), 1), MinReadySeconds: s.set.Spec.MinReadySeconds,
		MaxConcurrentResizes: workload.MaxConcurrentResizes(s.set.GetInPlaceUpdateStrategy(), s.desired),
		Stopped:              s.isStopped(), Condemned: s.placed.remove,
	}
	if err := r.describe(ctx, s, &asked); err != nil {
		return err
	}
	s.Decide(ctx, r.Executor, asked)
	s.Plan = s.Plan.Reworded(s.blockers())
	s.count()
	if s.isUpdated() {
		s.Revisions.Current = s.Revisions.Update
	}
	s.Carry(ctx, r.Executor, s.Plan.Moves)
	return nil
}

// describe says where the pods are. Those on nodes that are not ready or are being maintained use
// up no budget: they begin no update, and serve meanwhile. So do new pods beside the old ones.
func (r *Reconciler) describe(ctx context.Context, s *scope, asked *inplace.Workload) error {
	surges, beside, vacant := s.set.GetMaxSurge(s.desired) > 0, slices.Clone(s.placed.awaited), sets.New(s.placed.vacant...)
	for i, t := range s.turns {
		isAway := whyNotNow(s.known[t.node]) != ""
		switch {
		case vacant.Has(t.node): // it is to have no pod
		case isAway && t.pod != nil:
			beside = append(beside, t.pod)
		case isAway:
		case t.pod == nil:
			asked.Replicas++
		default:
			asked.Replicas++
			facts, err := workload.Facts(ctx, r.Client, s.Revisions, t.pod, s.Now)
			if err != nil {
				return err
			}
			facts.Surges = surges && i < s.released && t.runs
			facts.Held = facts.Surges || i >= s.released
			asked.Pods = append(asked.Pods, facts)
		}
	}
	for _, pod := range beside {
		facts, err := workload.Facts(ctx, r.Client, s.Revisions, pod, s.Now)
		if err != nil {
			return err
		}
		asked.Beside = append(asked.Beside, facts)
	}
	return nil
}

// blockers returns those of the plan, and of the pods that are not updated now because of their nodes.
// If something else holds such a pod up, that is named, but for what only a kubelet says that is silent.
func (s *scope) blockers() []inplace.Blocker {
	if s.isStopped() {
		return s.Plan.Blockers
	}
	mark, away := s.Revisions.MarkOf(s.Revisions.Update), map[*corev1.Pod]*corev1.Node{}
	for _, t := range s.turns[:s.released] {
		if node := s.known[t.node]; whyNotNow(node) != "" && t.group(mark) == isOld {
			away[t.pod] = node
		}
	}
	var blockers []inplace.Blocker
	named := sets.New[*corev1.Pod]()
	for _, b := range s.Plan.Blockers {
		if node := away[b.Pod]; node == nil || b.Reason != inplace.ReasonPodNotReady || !isSilent(node) {
			blockers = append(blockers, b)
			named.Insert(b.Pod)
		}
	}
	for _, t := range s.turns[:s.released] {
		if node := away[t.pod]; node != nil && !named.Has(t.pod) {
			blockers = append(blockers, inplace.Blocker{Pod: t.pod, State: inplace.Waiting, Reason: inplace.ReasonNodeUnavailable, Message: whyNotNow(node)})
		}
	}
	return blockers
}

// count counts what was planned.
func (s *scope) count() {
	s.counts = engine.Count(s.Plan.Pods)
	mark := s.Revisions.MarkOf(s.Revisions.Update)
	for i, t := range s.turns {
		switch {
		case t.group(mark) != isOld:
		case i < s.released:
			s.pending++
		default:
			s.kept++
		}
	}
}

// isUpdated reports whether no pod needs the current revision any more: there are nodes, all of
// their pods are ready and at the update revision, and nothing keeps others at the current one.
func (s *scope) isUpdated() bool {
	keepsOthers := s.partition() > 0 || s.set.GetRollingUpdate().Selector != nil
	return len(s.turns) > 0 && !keepsOthers && int(s.counts.UpdatedReady) == len(s.turns)
}
