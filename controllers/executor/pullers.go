// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// tend makes the pullers that a plan needs, and deletes those that it does not.
func (p *pulls) tend(ctx context.Context, plan inplace.Plan, pods []inplace.PodFacts) {
	needed := p.needed(plan, pods)
	working, failing := p.deleteOthers(ctx, needed)
	isHeld := p.isOn() && p.refusalOfAll() != nil
	var due []*wantedPull
	for _, pull := range p.wanted {
		canBegin := working < p.parallelism()
		if isHeld {
			canBegin = working+failing < enoughFailedPulls && pull.state == inplace.PullFailed
		}
		isDue := pull.pod != nil && !p.now.Before(pull.again)
		if canBegin && isDue && needed.Has(pull.name) && p.pullers[pull.name] == nil {
			working++
			due = append(due, pull)
		}
	}
	if len(due) > 0 {
		p.begin(ctx, due)
	}
	p.known.forgetPulls(p.wanted)
}

// needed returns the names of the pullers that pods of a plan wait for.
func (p *pulls) needed(plan inplace.Plan, pods []inplace.PodFacts) sets.Set[string] {
	names := sets.New[string]()
	for i := range pods {
		pull := p.by[pods[i].Pod.UID]
		waits := isForImages(pods[i].Refused) || isForImages(pods[i].Irreplaceable)
		if pull != nil && !pull.isDone() && (waits || plan.Pods[i].Step.PullsImages()) {
			names.Insert(pull.name)
		}
	}
	return names
}

// isForImages reports whether a pod stays as it is for images that are not on its node.
func isForImages(refused *inplace.Refusal) bool {
	return refused != nil && (refused.Reason == inplace.ReasonImageNotPullable || refused.Reason == inplace.ReasonImagePull)
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
			if !isSlow(puller, p.now) {
				working++
			}
		case puller.DeletionTimestamp == nil:
			p.delete(ctx, puller)
		}
	}
	return working, failing
}

// isSlow reports whether a puller is at it for so long that others do not wait for it.
func isSlow(puller *corev1.Pod, now time.Time) bool {
	return !now.Before(puller.CreationTimestamp.Add(slowPull))
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
	var errs []error
	for i := range list.Items {
		errs = append(errs, DeletePuller(ctx, c, &list.Items[i]))
	}
	return errors.Join(errs...)
}

// again returns when to look at the pulls again, if nothing is heard of them: when others are to be
// made. It is zero if there is no such time.
func (p *pulls) again() time.Time {
	first := time.Time{}
	for _, pull := range p.wanted {
		isDue := p.pullers[pull.name] == nil || pull.state == inplace.PullFailed
		if !pull.isDone() && isDue && pull.again.After(p.now) && (first.IsZero() || pull.again.Before(first)) {
			first = pull.again
		}
	}
	return first
}

// begin makes the pullers of pulls, of as many as the manager may make now.
func (p *pulls) begin(ctx context.Context, due []*wantedPull) {
	request := PullRequest{Reader: p.executor.client, Now: p.now, Number: len(due)}
	began, err := p.executor.Puller.Pulling.Begin(ctx, request, func(i int) { p.create(ctx, due[i]) })
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to count the pods that pull images")
	}
	for _, pull := range due[began:] {
		pull.again = p.now.Add(pullPause)
	}
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
		if IsRefusal(err) && !pull.isHeard() {
			pull.state, pull.words, pull.isDenied = inplace.PullRejected, "the API server does not take the pod that does it: "+ServerWords(err), true
		}
	}
}
