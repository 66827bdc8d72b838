// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// enoughFailedPulls is how many nodes that fail keep all pods, unless more have succeeded.
	enoughFailedPulls = 2
	// pullWhileOut is how long a pod that is out of service already stays so for a pull. It goes
	// back into service then, until the images are there.
	pullWhileOut = 10 * time.Second
)

// Puller says how images are pulled for the workloads of a kind.
type Puller struct {
	// Kind is that of the workloads, which control the pods that pull, unless the workload says
	// what does.
	Kind schema.GroupVersionKind
	// Live reads nodes and pods as they are.
	Live client.Reader
	// WithoutNodes: there is no right to read nodes, which belong to the cluster.
	WithoutNodes bool
	// Pulling is what holds for all workloads of the manager.
	Pulling *Pulling
}

// wantedPull is one that pods of a plan need.
type wantedPull struct {
	inplace.Pull
	*pullKnowledge
	// name is that of its puller, of a pod that needs it.
	name string
	of   *corev1.Pod
	// isTaking: a pod that needs it is out of service for it already.
	isTaking bool
}

// pulls are those for one plan.
type pulls struct {
	executor *Executor
	owner    client.Object
	workload inplace.Workload
	known    *verdicts
	now      time.Time
	// pullers are those that there are, by name.
	pullers map[string]*corev1.Pod
	// wanted are in the order in which pods need them; by tells which pod needs which.
	wanted []*wantedPull
	by     map[types.UID]*wantedPull
	// looked are those whose state is known in this plan. runs are the nodes on which a pod of
	// the new revision runs.
	looked sets.Set[*wantedPull]
	runs   sets.Set[string]
}

func newPulls(e *Executor, owner client.Object, w inplace.Workload, known *verdicts, now time.Time) *pulls {
	p := &pulls{
		executor: e, owner: owner, workload: w, known: known, now: now, pullers: map[string]*corev1.Pod{},
		by: map[types.UID]*wantedPull{}, looked: sets.New[*wantedPull](), runs: sets.New[string](),
	}
	for _, puller := range w.Pullers {
		p.pullers[puller.Name] = puller
	}
	return p
}

func (p *pulls) isOn() bool {
	return p.executor.Puller != nil && p.workload.Target.Pull.IsOn() && !p.workload.Stopped
}

// parallelism returns on how many nodes images are pulled at a time.
func (p *pulls) parallelism() int {
	if set := p.workload.Target.Pull.Parallelism; set > 0 {
		return set
	}
	return 2 * max(p.workload.MaxUnavailable, 1)
}

// refuse marks the pods whose images cannot be pulled onto their nodes, and those that are out of
// service while that takes long. It reports whether the plan is to be made again for that.
func (p *pulls) refuse(ctx context.Context, pods []inplace.PodFacts, plan inplace.Plan) bool {
	if !p.isOn() {
		return false
	}
	p.want(plan)
	p.look(ctx, plan)
	ofAll, marked := p.refusalOfAll(), false
	for i := range pods {
		needed, step := p.by[pods[i].Pod.UID], plan.Pods[i].Step
		refused := &pods[i].Refused
		if step.Deletes() {
			refused = &pods[i].Irreplaceable
		}
		isThere := needed != nil && (needed.proved || needed.settled)
		if *refused != nil || isThere || needed == nil && !waitsForOthers(pods[i].Pod) || !step.PullsImages() {
			continue
		}
		*refused = p.refusalFor(needed, ofAll, pods[i].Pod)
		marked = marked || *refused != nil
	}
	return marked
}

// waitsForOthers reports whether a pod that needs no pull now waits for what those of others come to:
// not one that does not run.
func waitsForOthers(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !inplace.IsBroken(pod) }

// refusalFor returns why a pod that needs a pull is not updated, or does not stay out of service
// for it; nil if it may wait for the pull as it is.
func (p *pulls) refusalFor(needed *wantedPull, ofAll *inplace.Refusal, pod *corev1.Pod) *inplace.Refusal {
	requires := p.workload.Target.Pull.Policy == appsv1beta1.RequireImagePull
	switch {
	case requires && ofAll != nil && !p.runs.Has(pod.Spec.NodeName):
		return ofAll
	case needed == nil, needed.gaveUp:
		return nil
	case requires && needed.state == inplace.PullFailed:
		return &inplace.Refusal{Reason: inplace.ReasonImageNotPullable, Message: needed.failure(), Until: needed.again}
	case inplace.IsMarkedNotReady(pod) && !needed.since.IsZero() && !p.now.Before(needed.since.Add(pullWhileOut)):
		bar := p.barFor(needed)
		return &inplace.Refusal{Reason: bar.Reason, Message: bar.Message, Until: bar.Until}
	default:
		return nil
	}
}

// end returns when a pull is given up: with Require only where no kubelet has said anything. It
// is zero where it is not, or where the pull has not begun.
func (p *pulls) end(needed *wantedPull) time.Time {
	policy := p.workload.Target.Pull
	switch {
	case needed.since.IsZero(), policy.Policy == appsv1beta1.RequireImagePull && needed.isHeard():
		return time.Time{}
	case needed.state == inplace.PullRejected, p.known.unanswered >= enoughFailedPulls:
		return needed.since.Add(policy.RefusedTimeout)
	default:
		return needed.since.Add(policy.Timeout)
	}
}

// failure says what the kubelet says of a pull that fails.
func (w *wantedPull) failure() string {
	return Shorten(fmt.Sprintf("the kubelet on %s cannot pull %s: %s", w.Node, w.ImagesInWords(), w.words))
}

// refusalOfAll returns why no pod starts its update: several nodes have failed to pull the images,
// and no more have them. It is nil if that is not so.
func (p *pulls) refusalOfAll() *inplace.Refusal {
	if p.workload.Target.Pull.Policy != appsv1beta1.RequireImagePull {
		return nil
	}
	var failed []*wantedPull
	succeeded := p.runs.Clone()
	for _, needed := range p.wanted {
		switch {
		case needed.proved:
			succeeded.Insert(needed.Node)
		case needed.state == inplace.PullFailed && !needed.gaveUp:
			failed = append(failed, needed)
		}
	}
	if len(failed) < enoughFailedPulls || succeeded.Len() > len(failed) {
		return nil
	}
	slices.SortFunc(failed, func(a, b *wantedPull) int { return strings.Compare(a.Node, b.Node) })
	until := slices.MinFunc(failed, func(a, b *wantedPull) int { return a.again.Compare(b.again) }).again
	return &inplace.Refusal{
		Reason: inplace.ReasonImageNotPullable, Until: until,
		Message: Shorten(fmt.Sprintf("%d nodes cannot pull the images, and others do not try before one can: %s", len(failed), failed[0].failure())),
	}
}

// withoutUnpulled returns a plan without the moves of pods whose images are not on their nodes.
func (p *pulls) withoutUnpulled(plan inplace.Plan) inplace.Plan {
	if !p.isOn() {
		return plan
	}
	return plan.Without(func(move inplace.Move) *inplace.Bar {
		needed := p.by[move.Pod.UID]
		if needed == nil || needed.isDone() || !move.Step.PullsImages() {
			return nil
		}
		return p.barFor(needed)
	})
}

// barFor says what keeps a pod from its update that needs a pull.
func (p *pulls) barFor(needed *wantedPull) *inplace.Bar {
	bar, end := &inplace.Bar{Reason: inplace.ReasonImagePull}, p.end(needed)
	moments := []time.Time{end}
	if p.pullers[needed.name] == nil || needed.state == inplace.PullFailed {
		moments = append(moments, needed.again)
	}
	if needed.isTaking && !needed.since.IsZero() {
		moments = append(moments, needed.since.Add(pullWhileOut))
	}
	for _, at := range moments {
		if at.After(p.now) && (bar.Until.IsZero() || at.Before(bar.Until)) {
			bar.Until = at
		}
	}
	switch {
	case needed.state == inplace.PullFailed:
		bar.Message = needed.failure()
	case needed.state == inplace.PullRejected:
		bar.Message = Shorten(fmt.Sprintf("no pod pulls %s onto %s: %s", needed.ImagesInWords(), needed.Node, needed.words))
	case needed.since.IsZero():
		bar.Message = fmt.Sprintf("%s is to pull %s when other nodes have done so", needed.Node, needed.ImagesInWords())
		return bar
	default:
		bar.Message = fmt.Sprintf("%s pulls %s before the pod is updated", needed.Node, needed.ImagesInWords())
		return bar
	}
	if !end.IsZero() {
		bar.Message += "; the update goes on without at " + end.UTC().Format(time.RFC3339)
	}
	return bar
}
