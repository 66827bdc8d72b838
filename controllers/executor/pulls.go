// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
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
		needed := p.by[pods[i].Pod.UID]
		if pods[i].Refused != nil || needed == nil || needed.isDone() || !pullsImages(plan.Pods[i].Step) {
			continue
		}
		pods[i].Refused = p.refusalFor(needed, ofAll, pods[i].Pod)
		marked = marked || pods[i].Refused != nil
	}
	return marked
}

// pullsImages reports whether a step leads to a patch that needs images on the node.
func pullsImages(step inplace.Step) bool { return step.LeadsToPatch && step.Change.PullsImages() }

// refusalFor returns why a pod that needs a pull is not updated, or does not stay out of service
// for it; nil if it may wait for the pull as it is.
func (p *pulls) refusalFor(needed *wantedPull, ofAll *inplace.Refusal, pod *corev1.Pod) *inplace.Refusal {
	requires := p.workload.Target.Pull.Policy == appsv1beta1.RequireImagePull
	switch {
	case requires && ofAll != nil:
		return ofAll
	case requires && needed.state == inplace.PullFailed:
		return &inplace.Refusal{Reason: inplace.ReasonImageNotPullable, Message: needed.failure(), Until: needed.again}
	case inplace.IsMarkedNotReady(pod) && !needed.since.IsZero() && !p.now.Before(needed.since.Add(pullWhileOut)):
		bar := p.barFor(needed)
		return &inplace.Refusal{Reason: bar.Reason, Message: bar.Message, Until: bar.Until}
	default:
		return nil
	}
}

// want notes what the pods of a plan need: first of those that move now, then of the others in
// their order.
func (p *pulls) want(plan inplace.Plan) {
	moving := sets.New[types.UID]()
	for _, move := range plan.Moves {
		moving.Insert(move.Pod.UID)
	}
	byKey := map[string]*wantedPull{}
	for _, needed := range p.wanted {
		byKey[needed.Key()] = needed
	}
	for _, isMoving := range []bool{true, false} {
		for _, state := range plan.Pods {
			if state.Runs() {
				p.runs.Insert(state.Pod.Spec.NodeName)
			}
			if moving.Has(state.Pod.UID) != isMoving || p.by[state.Pod.UID] != nil {
				continue
			}
			pull := inplace.PullFor(state)
			if len(pull.Images) == 0 {
				continue
			}
			needed := byKey[pull.Key()]
			if needed == nil {
				needed = &wantedPull{Pull: pull, pullKnowledge: p.known.onPull(pull, inplace.IsMarkedNotReady(state.Pod)), name: pull.PullerName(p.owner), of: state.Pod}
				byKey[pull.Key()], p.wanted = needed, append(p.wanted, needed)
			}
			p.by[state.Pod.UID] = needed
			needed.isTaking = needed.isTaking || inplace.IsMarkedNotReady(state.Pod)
		}
	}
}

// look finds out how far the pulls are that are needed now, and the next ones.
func (p *pulls) look(ctx context.Context, plan inplace.Plan) {
	now := sets.New[*wantedPull]()
	for _, move := range plan.Moves {
		now.Insert(p.by[move.Pod.UID])
	}
	ahead := p.parallelism()
	var unread []*wantedPull
	for _, needed := range p.wanted {
		if p.runs.Has(needed.Node) {
			needed.prove(p.now)
		}
		if !needed.isTaking {
			needed.expire(p.now)
		}
		if needed.isDone() {
			continue
		}
		if !now.Has(needed) {
			if ahead == 0 {
				continue
			}
			ahead--
		}
		if p.looked.Has(needed) {
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
			// What a quota or a policy says of one, it says of all.
			p.known.noPullers = p.known.noPullers || needed.isDenied
		}
		if needed.isDone() {
			p.known.settle(needed.Pull)
		}
		needed.gaveUp = needed.gaveUp || !needed.proved && p.known.noPullers
		p.executor.countPull(before, *needed.pullKnowledge, p.now)
	}
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
	// The kubelet asks the registry whether a pod that has secrets for it may use an image that is
	// on the node already (KEP-2535).
	if len(pod.Spec.ImagePullSecrets) > 0 {
		return
	}
	node := &corev1.Node{}
	err := p.executor.Puller.Live.Get(ctx, client.ObjectKey{Name: needed.Node}, node)
	switch {
	case err == nil && needed.IsOn(node):
		needed.prove(p.now)
	case err == nil, apierrors.IsForbidden(err): // it may be a manager with rights in namespaces only
	default:
		ctrl.LoggerFrom(ctx).Error(err, "Failed to read which images a node has", "Node", needed.Node)
	}
}

// end returns when a pull is given up: with Require only where no kubelet has said anything. It
// is zero where it is not, or where the pull has not begun.
func (p *pulls) end(needed *wantedPull) time.Time {
	policy := p.workload.Target.Pull
	if needed.since.IsZero() || policy.Policy == appsv1beta1.RequireImagePull && needed.isHeard() {
		return time.Time{}
	}
	return needed.since.Add(policy.Timeout)
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
		if needed == nil || needed.isDone() || !pullsImages(move.Step) {
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

// tend makes the pullers that a plan needs, and deletes those that it does not.
func (p *pulls) tend(ctx context.Context, plan inplace.Plan, pods []inplace.PodFacts) {
	needed := p.needed(plan, pods)
	working, failing := p.deleteOthers(ctx, needed)
	isHeld := p.isOn() && p.refusalOfAll() != nil
	for _, pull := range p.wanted {
		canBegin := working < p.parallelism()
		if isHeld {
			canBegin = working+failing < enoughFailedPulls && pull.state == inplace.PullFailed
		}
		isDue := pull.pod != nil && !p.now.Before(pull.again)
		if canBegin && isDue && needed.Has(pull.name) && p.pullers[pull.name] == nil {
			working++
			p.create(ctx, pull)
		}
	}
	p.known.forgetPulls(p.wanted)
}

// needed returns the names of the pullers that pods of a plan wait for.
func (p *pulls) needed(plan inplace.Plan, pods []inplace.PodFacts) sets.Set[string] {
	names := sets.New[string]()
	for i := range pods {
		pull, refused := p.by[pods[i].Pod.UID], pods[i].Refused
		waits := refused != nil && (refused.Reason == inplace.ReasonImageNotPullable || refused.Reason == inplace.ReasonImagePull)
		if pull != nil && !pull.isDone() && (waits || pullsImages(plan.Pods[i].Step)) {
			names.Insert(pull.name)
		}
	}
	return names
}

// deleteOthers deletes the pullers that are not needed, or that are over. Of the others it returns
// how many work, and how many fail.
func (p *pulls) deleteOthers(ctx context.Context, needed sets.Set[string]) (working, failing int) {
	for _, puller := range p.workload.Pullers {
		state, _ := inplace.PullStateOf(puller)
		isOld := state == inplace.PullFailed && !p.now.Before(puller.CreationTimestamp.Add(freshPull))
		switch {
		case needed.Has(puller.Name) && state == inplace.PullFailed && !isOld:
			failing++
		case needed.Has(puller.Name) && state != inplace.PullRejected && !isOld:
			working++
		case puller.DeletionTimestamp == nil:
			p.delete(ctx, puller)
		}
	}
	return working, failing
}

func (p *pulls) delete(ctx context.Context, puller *corev1.Pod) {
	if err := DeletePuller(ctx, p.executor.client, puller); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to delete a pod that pulls images", "Pod", klog.KObj(puller))
	}
}

// DeletePuller deletes a pod that pulls images, if it is still there.
func DeletePuller(ctx context.Context, c client.Writer, puller *corev1.Pod) error {
	err := c.Delete(ctx, reference(puller), client.Preconditions{UID: &puller.UID}, client.GracePeriodSeconds(0))
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// DeletePullers deletes the pods that pull images for a workload. The reader is of a cache with
// the indexes of package podcache.
func DeletePullers(ctx context.Context, c client.Client, workload client.Object) error {
	list := &corev1.PodList{}
	if err := podcache.Pullers(ctx, c, workload, list); err != nil {
		return err
	}
	return deletePullers(ctx, c, list.Items)
}

// DeleteAllPullers deletes the pods that pull images for all workloads of a namespace.
func DeleteAllPullers(ctx context.Context, c client.Client, namespace string) error {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel}); err != nil {
		return fmt.Errorf("list pods that pull images: %w", err)
	}
	return deletePullers(ctx, c, list.Items)
}

func deletePullers(ctx context.Context, c client.Writer, pullers []corev1.Pod) error {
	var errs []error
	for i := range pullers {
		errs = append(errs, DeletePuller(ctx, c, &pullers[i]))
	}
	return errors.Join(errs...)
}

func (p *pulls) create(ctx context.Context, pull *wantedPull) {
	controller := p.workload.PullerController
	if controller == nil {
		controller = metav1.NewControllerRef(p.owner, p.executor.Puller.Kind)
	}
	puller := pull.Puller(p.owner, *controller, pull.pod)
	pull.begin(p.now)
	pull.again, pull.isDenied = p.now.Add(refusalPeriod), false // not sooner, should another client delete it
	err := p.executor.client.Create(ctx, puller)
	switch {
	case err == nil:
		p.pullers[puller.Name] = puller
		ctrl.LoggerFrom(ctx).Info("Pulling images", "Node", pull.Node, "images", pull.ImagesInWords(), "Pod", klog.KObj(puller))
	case apierrors.IsAlreadyExists(err): // the cache is late
	default:
		ctrl.LoggerFrom(ctx).Error(err, "Failed to create a pod that pulls images", "Pod", klog.KObj(puller))
		if !pull.isHeard() {
			pull.state, pull.words, pull.isDenied = inplace.PullRejected, "the API server does not take the pod that does it: "+ServerWords(err), IsRefusal(err)
		}
	}
}
