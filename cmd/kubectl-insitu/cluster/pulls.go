// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// parallelPulls is how many pulls are tried at a time.
	parallelPulls = 10
	// pullPoll is how often a pod that pulls is looked at.
	pullPoll = 500 * time.Millisecond
	// writePatience is how long the creation or the deletion of a pod that pulls may take. Its user
	// does not end it: the pod would be left.
	writePatience = 10 * time.Second
)

// PlanAndPull is Plan, and has the nodes pull the images that pods would get, or new pods in their
// place, each for so long. That is no dry run: it makes a pod on each node that does not list them, and
// deletes it. When the context ends, the plan says what is known so far. say tells how far it is.
func (c *Cluster) PlanAndPull(ctx context.Context, found Found, changed client.Object, patience time.Duration, say func(string)) (report.Plan, error) {
	p, err := c.planned(ctx, found, changed)
	if err != nil {
		return report.Plan{}, err
	}
	for _, verb := range []string{"create", "delete"} {
		may, err := p.may(ctx, c.Client, verb, "")
		if err != nil {
			return report.Plan{}, err
		}
		if !may {
			return report.Plan{}, fmt.Errorf("flag --pull: you may not %s pods in namespace %s, which it takes to have nodes pull", verb, found.Object.GetNamespace())
		}
	}
	if err := deleteOverdue(ctx, c.Client, found.Object); err != nil {
		return report.Plan{}, err
	}
	p.tryPulls(ctx, c.Client, patience, say)
	return p.plan, nil
}

// tryPulls notes what comes of the pulls that the plan leads to.
func (p *planner) tryPulls(ctx context.Context, c client.Client, patience time.Duration, say func(string)) {
	if len(p.pulls) == 0 {
		p.note("no image is to be pulled for pods that Insitu changes or recreates")
		return
	}
	say(fmt.Sprintf("Pulling images for %s, up to %s on each node (%d to do)", p.found, patience, len(p.pulls)))
	p.plan.Pulls = make([]report.TriedPull, len(p.pulls))
	left := make([]error, len(p.pulls))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), parallelPulls, len(p.pulls), func(i int) {
		p.plan.Pulls[i], left[i] = p.pulls[i].try(ctx, c, patience)
	})
	for _, err := range left {
		if err != nil {
			p.note("%s: delete it", err)
		}
	}
}

// neededPull is a pull that a plan leads to.
type neededPull struct {
	inplace.Pull
	// by is a pod that needs it, of the workload of.
	by *corev1.Pod
	of Found
}

// need notes the pull that a step of a pod needs, once for all pods of a node.
func (p *planner) need(pod *corev1.Pod, step inplace.Step) {
	pull := inplace.PullOf(pod, step)
	isKnown := slices.ContainsFunc(p.pulls, func(known neededPull) bool { return known.Key() == pull.Key() })
	if len(pull.Images) > 0 && !isKnown {
		p.pulls = append(p.pulls, neededPull{pull, pod, p.found})
	}
}

// try has the node pull, and says what comes of it. An error names a pod that could not be deleted.
func (n neededPull) try(ctx context.Context, c client.Client, patience time.Duration) (report.TriedPull, error) {
	tried := report.TriedPull{Node: n.Node, Images: []string{}}
	for _, image := range n.Images {
		tried.Images = append(tried.Images, image.Name)
	}
	pod, node := &corev1.Pod{}, &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(n.by), pod); err != nil {
		return tried.With(report.PullUnanswered, "pod "+n.by.Name+" cannot be read: "+err.Error()), nil //nolint:nilerr // it is what came of the pull
	}
	// A user who may not read nodes has them pull what they may have.
	if err := c.Get(ctx, client.ObjectKey{Name: n.Node}, node); err == nil {
		switch {
		case inplace.IsVirtual(node):
			return tried.With(report.NotTried, "a virtual node has no store of images"), nil
		case n.IsOn(node, pod):
			return tried.With(report.OnNode, ""), nil
		}
	}
	puller, began := n.puller(pod, patience), time.Now()
	err := write(ctx, func(ctx context.Context) error { return c.Create(ctx, puller) })
	if err == nil {
		tried = n.follow(ctx, c, puller, tried, patience)
		tried.Seconds = time.Since(began).Seconds()
	} else {
		tried = tried.With(report.PullRefused, "the API server does not take the pod that pulls: "+executor.ServerWords(err))
	}
	// Where the answer was lost, the pod may be there.
	err = write(ctx, func(ctx context.Context) error { return c.Delete(ctx, puller, client.GracePeriodSeconds(0)) })
	if client.IgnoreNotFound(err) != nil {
		return tried, fmt.Errorf("pod %s/%s, which pulled images, could not be deleted (%w)", puller.Namespace, puller.Name, err)
	}
	return tried, nil
}

// write does what its user does not end.
func write(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
	defer cancel()
	return do(ctx)
}

// puller returns the pod that pulls. It goes with its workload, which does not take it for its own.
func (n neededPull) puller(pod *corev1.Pod, patience time.Duration) *corev1.Pod {
	apiVersion, kind := n.of.Kind.GroupVersionKind.ToAPIVersionAndKind()
	puller := n.Puller(n.of.Object, metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: n.of.Object.GetName(), UID: n.of.Object.GetUID(),
	}, pod)
	puller.Name += "-" + rand.String(5)
	puller.Labels[appsv1beta1.PullerLabel] = appsv1beta1.PullerOfPlan
	puller.Spec.ActiveDeadlineSeconds = ptr.To(int64((patience + time.Minute).Seconds()))
	return puller
}

// deleteOverdue deletes what earlier plans have left that were killed.
func deleteOverdue(ctx context.Context, c client.Client, workload client.Object) error {
	list := &corev1.PodList{}
	err := c.List(ctx, list, client.InNamespace(workload.GetNamespace()), client.MatchingLabels{appsv1beta1.PullerLabel: appsv1beta1.PullerOfPlan})
	if err != nil {
		return Explain(fmt.Errorf("list pods that pulled images for plans: %w", err))
	}
	var errs []error
	for i := range list.Items {
		pod := &list.Items[i]
		life := time.Duration(ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0)) * time.Second
		isOwn := slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == workload.GetUID() })
		if isOwn && time.Since(pod.CreationTimestamp.Add(life)) > 0 {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0))))
		}
	}
	return errors.Join(errs...)
}

// follow waits for what comes of a pull.
func (n neededPull) follow(ctx context.Context, c client.Reader, puller *corev1.Pod, tried report.TriedPull, patience time.Duration) report.TriedPull {
	state, words := inplace.PullUnanswered, ""
	var unread error
	_ = wait.PollUntilContextTimeout(ctx, pullPoll, patience, true, func(ctx context.Context) (bool, error) {
		if unread = c.Get(ctx, client.ObjectKeyFromObject(puller), puller); unread != nil {
			return apierrors.IsNotFound(unread), nil //nolint:nilerr // others may go by
		}
		state, words = inplace.PullStateOf(puller)
		return state != inplace.PullUnanswered && state != inplace.PullUnderWay, nil
	})
	switch {
	case state == inplace.Pulled:
		return tried.With(report.Pulled, "")
	case state == inplace.PullFailed:
		return tried.With(report.PullFailed, words)
	case state == inplace.PullRejected:
		return tried.With(report.PullRefused, "the kubelet does not take the pod that pulls: "+words)
	case ctx.Err() != nil:
		return tried.With(report.PullUnanswered, "you ended it")
	case unread != nil:
		return tried.With(report.PullUnanswered, unread.Error())
	case state == inplace.PullUnderWay:
		return tried.With(report.PullUnanswered, fmt.Sprintf("the kubelet still pulls after %s", patience))
	default:
		return tried.With(report.PullUnanswered, fmt.Sprintf("no kubelet answered for %s", patience))
	}
}
