// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// want finds out which pulls pods need: those that move now and those that are out of service, those
// whose nodes have begun to pull, and so many more as may pull at a time. Of thousands of pods, the
// others need not be looked at before it is their turn.
func (p *pulls) want(plan inplace.Plan) {
	moving, begun, later := sets.New[types.UID](), p.begunNodes(), p.parallelism()
	for _, move := range plan.Moves {
		moving.Insert(move.Pod.UID)
	}
	byKey := map[string]*wantedPull{}
	for _, needed := range p.wanted {
		byKey[needed.Key()] = needed
	}
	for i := range plan.Pods {
		if state := &plan.Pods[i]; state.Runs() {
			p.runs.Insert(state.Pod.Spec.NodeName)
		}
	}
	isDue := func(state *inplace.PodState) bool {
		return moving.Has(state.Pod.UID) || inplace.IsMarkedNotReady(state.Pod)
	}
	for i := range plan.Pods {
		if state := &plan.Pods[i]; isDue(state) {
			p.wantFor(state, byKey)
		}
	}
	for i := range plan.Pods {
		state := &plan.Pods[i]
		node := state.Pod.Spec.NodeName
		hasBegun := begun.Has(node)
		if isDue(state) || !hasBegun && (later == 0 || p.runs.Has(node)) {
			continue
		}
		if isNew := p.wantFor(state, byKey); isNew && !hasBegun {
			later--
		}
	}
}

// begunNodes returns the nodes that pull or have pulled, as far as that is known.
func (p *pulls) begunNodes() sets.Set[string] {
	nodes := sets.New[string]()
	for _, known := range p.known.pulls {
		if known.pod != nil || known.isDone() || !known.since.IsZero() {
			nodes.Insert(known.node)
		}
	}
	for _, puller := range p.pullers {
		nodes.Insert(puller.Spec.NodeName)
	}
	return nodes
}

// wantFor notes which pull a pod needs, and reports whether no other pod did yet.
func (p *pulls) wantFor(state *inplace.PodState, byKey map[string]*wantedPull) (isNew bool) {
	if p.by[state.Pod.UID] != nil {
		return false
	}
	pull := inplace.PullFor(*state)
	if len(pull.Images) == 0 {
		return false
	}
	key, isOut := pull.Key(), inplace.IsMarkedNotReady(state.Pod)
	needed := byKey[key]
	if isNew = needed == nil; isNew {
		needed = &wantedPull{Pull: pull, pullKnowledge: p.known.onPull(pull, isOut), name: pull.PullerName(p.owner), of: state.Pod}
		byKey[key], p.wanted = needed, append(p.wanted, needed)
	}
	p.by[state.Pod.UID] = needed
	needed.isTaking = needed.isTaking || isOut
	return isNew
}

// ahead returns for how many pulls is looked that are not needed now.
func (p *pulls) ahead(plan inplace.Plan) int {
	updated := 0
	for _, state := range plan.Pods {
		if state.Updated && state.Ready {
			updated++
		}
	}
	if updated < p.workload.Target.Pull.MinUpdatedReady {
		return 0
	}
	return p.parallelism()
}

// look finds out how far the pulls are that are needed now, and the next ones.
func (p *pulls) look(ctx context.Context, plan inplace.Plan) {
	var unread []*wantedPull
	for _, needed := range p.next(plan) {
		if needed.isDone() || p.looked.Has(needed) {
			continue
		}
		p.looked.Insert(needed)
		if puller := p.pullers[needed.name]; puller != nil {
			p.hear(needed, puller)
		} else if needed.pod == nil {
			unread = append(unread, needed)
		}
	}
	workqueue.ParallelizeUntil(ctx, p.executor.Parallelism, len(unread), func(i int) { p.readNode(ctx, unread[i]) })
	for needed := range p.looked {
		before := *needed.pullKnowledge
		if end := p.end(needed); !needed.proved && !end.IsZero() && !p.now.Before(end) {
			needed.gaveUp = true
			p.known.giveUp(needed.pullKnowledge)
		}
		needed.gaveUp = needed.gaveUp || !needed.proved && p.known.isGivenUp(needed.pullKnowledge)
		if needed.isDone() {
			p.known.settle(needed.Pull)
		}
		p.executor.countPull(before, *needed.pullKnowledge, p.now)
	}
}

// next returns the pulls that are needed now, those that fail, and as many more as may go on at a time.
// It forgets proofs that are too old for pods that are to rely on them.
func (p *pulls) next(plan inplace.Plan) []*wantedPull {
	now := sets.New[*wantedPull]()
	for _, move := range plan.Moves {
		if needed := p.by[move.Pod.UID]; needed != nil {
			now.Insert(needed)
		}
	}
	ahead := p.ahead(plan)
	farthest := 2 * ahead // with those that are done: where a rollout is stuck, no more come
	var next []*wantedPull
	for _, needed := range p.wanted {
		if p.runs.Has(needed.Node) {
			needed.prove(p.now)
		}
		switch {
		case now.Has(needed):
			if !needed.isTaking {
				needed.expire(p.now)
			}
		case needed.state == inplace.PullFailed:
		case ahead == 0 || farthest == 0:
			continue
		default:
			farthest--
			if !needed.isDone() {
				ahead--
			}
		}
		next = append(next, needed)
	}
	return next
}

// hear notes what a puller shows.
func (p *pulls) hear(needed *wantedPull, puller *corev1.Pod) {
	before := *needed.pullKnowledge
	needed.read(puller, p.now)
	p.executor.countPull(before, *needed.pullKnowledge, p.now)
}

// readNode reads a pod, and asks its node whether it has the images.
func (p *pulls) readNode(ctx context.Context, needed *wantedPull) {
	pod := &corev1.Pod{}
	if err := p.executor.Puller.Live.Get(ctx, client.ObjectKeyFromObject(needed.of), pod); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to read a pod that needs images", "Pod", klog.KObj(needed.of))
		needed.begin(p.now)
		needed.again = p.now.Add(refusalPeriod)
		return
	}
	needed.pod = pod
	if p.executor.Puller.WithoutNodes {
		return
	}
	node := &corev1.Node{}
	err := p.executor.Puller.Live.Get(ctx, client.ObjectKey{Name: needed.Node}, node)
	switch {
	case err == nil && (inplace.IsVirtual(node) || needed.IsOn(node, pod)):
		needed.prove(p.now)
	case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err): // it may be a user who asks what the manager would do
	default:
		ctrl.LoggerFrom(ctx).Error(err, "Failed to read which images a node has", "Node", needed.Node)
	}
}
