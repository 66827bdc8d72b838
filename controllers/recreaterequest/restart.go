// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// judge lets those containers fail that cannot be restarted: the request asks for what no kubelet
// does, their image has one spelling only, or the API server refuses another one.
func (r *Reconciler) judge(ctx context.Context, p *progress) error {
	if len(p.toBeRestarted()) == 0 {
		return nil
	}
	asked := inplace.RecreateRequestOf(p.pod)
	isAsked := asked != nil && asked.UID == p.request.UID // who restarts them asks the API server, too
	if !isAsked {
		if why, err := r.refuse(ctx, p); why != "" || err != nil {
			p.failAll(why)
			return err
		}
	}
	var changes []inplace.ImageChange
	for _, name := range p.toBeRestarted() {
		change, refused := inplace.RestartOf(p.pod, name, p.now)
		switch {
		case refused == nil:
			changes = append(changes, *change)
		case refused.Reason != inplace.ReasonSettling:
			p.failContainer(name, refused.Message)
		}
	}
	if isAsked {
		return nil
	}
	return r.try(ctx, p, changes)
}

// try asks the API server whether it lets containers be restarted: all at once, and each of them where
// it does not.
func (r *Reconciler) try(ctx context.Context, p *progress, changes []inplace.ImageChange) error {
	if len(changes) == 0 {
		return nil
	}
	why, err := r.executor.TryRestarts(ctx, p.pod, changes)
	if why == "" || err != nil {
		return err
	}
	if len(changes) == 1 {
		p.failContainer(changes[0].Container, why)
		return nil
	}
	for i := range changes {
		if err := r.try(ctx, p, changes[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns why nothing of a request can be done; nothing if that is not so.
func (r *Reconciler) refuse(ctx context.Context, p *progress) (string, error) {
	if _, isStatic := p.pod.Annotations[corev1.MirrorPodAnnotationKey]; isStatic {
		return fmt.Sprintf("pod %s is static: its kubelet runs what a file on its node says", p.pod.Name), nil
	}
	own := ptr.Deref(p.pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if asked := strategyOf(p.request).TerminationGracePeriodSeconds; asked != nil && *asked != own {
		return fmt.Sprintf("strategy.terminationGracePeriodSeconds is %d, and the kubelet stops containers within the time of the pod: %d, or none is accepted", *asked, own), nil
	}
	pod := &corev1.Pod{} // the cache has neither hooks nor the restart policy
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(p.pod), pod); err != nil {
		return "", fmt.Errorf("read pod %s/%s: %w", p.pod.Namespace, p.pod.Name, err)
	}
	for _, name := range p.toBeRestarted() {
		if hasEnded(pod, name) {
			p.failContainer(name, fmt.Sprintf("container %s has ended, and restartPolicy %s of the pod lets no kubelet start it again", name, pod.Spec.RestartPolicy))
		}
	}
	for i, c := range p.request.Spec.Containers {
		if c.PreStop != nil && !hasHook(pod, c) {
			return fmt.Sprintf("spec.containers[%d].preStop is not that of container %s, and the kubelet runs the container's own: leave it out", i, c.Name), nil
		}
	}
	return "", nil
}

// hasEnded reports whether a container of a pod has ended, and is not started again.
func hasEnded(pod *corev1.Pod, name string) bool {
	status := statusOf(pod, name)
	if status == nil || status.State.Terminated == nil {
		return false
	}
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && status.State.Terminated.ExitCode == 0
}

// hasHook reports whether the hook of a container of a pod is that which a request says.
func hasHook(pod *corev1.Pod, asked appsv1beta1.ContainerRecreateRequestContainer) bool {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == asked.Name && c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			return apiequality.Semantic.DeepEqual(c.Lifecycle.PreStop, asked.PreStop)
		}
	}
	return false
}

// carryOut does what a pod is asked for, if no controller of ours updates it. Events are
// about an object. It returns what the pod waits for.
func (r *Reconciler) carryOut(ctx context.Context, about client.Object, pod *corev1.Pod, requeue *workload.Requeue) (waits string, err error) {
	object, err := gates.WorkloadOf(ctx, r.client, pod)
	if err != nil {
		return "", err
	}
	if object != nil {
		return r.waitsFor(object, pod)
	}
	now := r.clock.Now()
	pod = pod.DeepCopy()
	for _, key := range []string{appsv1beta1.SpecifiedDeleteKey, appsv1beta1.LifecycleStateKey} {
		delete(pod.Labels, key) // they ask another controller for something
	}
	facts := inplace.PodFacts{Pod: pod}
	if inplace.IsMarkedNotReady(pod) {
		if facts.Services, err = podcache.ServicesTo(ctx, r.client, pod); err != nil {
			return "", err
		}
	}
	alone := inplace.Workload{
		// The pod stays at whichever revision it has, and is not deleted for anything.
		Target: inplace.Target{
			Revision: inplace.Revision{Name: inplace.RevisionOf(pod)}, Policy: appsv1beta1.InPlaceOnlyPodUpdateStrategyType, KeepReady: containersOf(pod),
		},
		Unasked: true, OthersDelete: true, Replicas: 1, MaxUnavailable: 1, Pods: []inplace.PodFacts{facts.Read(now)},
	}
	plan, tried := r.executor.Plan(ctx, about, alone, now)
	result := tried.With(r.executor.Run(ctx, about, alone.Target.Name, plan.Moves))
	if result.IsUnfinished() {
		requeue.AfterConflict()
	}
	if !plan.Recheck.IsZero() {
		requeue.Within(max(plan.Recheck.Sub(now), time.Millisecond))
	}
	for _, err := range result.Errors() {
		return "", err
	}
	for _, blocker := range plan.Blockers {
		return blocker.Message, nil
	}
	return "", nil
}

// containersOf returns the names of all containers of a pod: no workload asks for the pod to be taken
// out of service for any of them.
func containersOf(pod *corev1.Pod) []string {
	var names []string
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	return names
}

// waitsFor says what a pod waits for that the controller of its workload updates.
func (r *Reconciler) waitsFor(object client.Object, pod *corev1.Pod) (string, error) {
	kind, err := apiutil.GVKForObject(object, r.client.Scheme())
	if err != nil {
		return "", fmt.Errorf("name the workload of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	name := kind.Kind + " " + object.GetName()
	// The workloads of our own kinds say in the same field why pods wait.
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("read status of %s: %w", name, err)
	}
	blockers, _, _ := unstructured.NestedSlice(fields, "status", "blockers")
	for _, blocker := range blockers {
		if of, _ := blocker.(map[string]any); of["pod"] == pod.Name {
			return fmt.Sprintf("%s: %v", name, of["message"]), nil
		}
	}
	return name + " restarts them when their turn comes", nil
}
