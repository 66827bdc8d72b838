// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// generate returns the status that the kubelet publishes at the beginning of a
// sync of the pod. The conditions come from the kubelet's own code.
func (r *Runtime) generate(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	if r.startTime.IsZero() {
		r.startTime = seconds(now)
	}
	next := corev1.PodStatus{
		ObservedGeneration: podutil.CalculatePodStatusObservedGeneration(pod),
		HostIP:             r.hostIP,
		HostIPs:            []corev1.HostIP{{IP: r.hostIP}},
		StartTime:          r.startTime.DeepCopy(),
		QOSClass:           v1qos.GetPodQOS(pod),
		AllocatedResources: resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}),
		Resources:          r.podResources(pod),
	}
	r.setPodIP(pod, &next)
	next.InitContainerStatuses = r.containerStatuses(pod, pod.Spec.InitContainers, now)
	next.ContainerStatuses = r.containerStatuses(pod, pod.Spec.Containers, now)
	next.Phase = r.phase(pod, next, false)
	r.keepReason(pod, &next)
	next.Conditions = r.conditions(pod, next, now)
	return next
}

// generateFinal is generate for a pod whose containers have all ended for good.
func (r *Runtime) generateFinal(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	r.resize = resizeConditions{}
	next := r.generate(pod, now)
	next.Phase = r.phase(pod, next, true)
	if !isTerminal(next.Phase) { // it was deleted before it ran
		next.Phase = corev1.PodFailed
	}
	markLost(next.ContainerStatuses, len(pod.Spec.InitContainers) == 0 || r.anyMainContainer(pod))
	next.Conditions = r.conditions(pod, next, now)
	return next
}

// markLost gives containers that never ran an end, as the kubelet does with
// pods that have come so far that they should run.
func markLost(statuses []corev1.ContainerStatus, initialized bool) {
	for i := range statuses {
		if !initialized || statuses[i].State.Terminated != nil {
			continue
		}
		statuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason:   kubecontainer.ContainerReasonStatusUnknown,
			Message:  "The container could not be located when the pod was terminated",
			ExitCode: killed,
		}}
	}
}

func (r *Runtime) anyMainContainer(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(spec corev1.Container) bool {
		return r.containers[spec.Name] != nil
	})
}

func (r *Runtime) setPodIP(pod *corev1.Pod, next *corev1.PodStatus) {
	switch {
	case pod.Spec.HostNetwork:
		next.PodIP = r.hostIP
	case r.sandbox:
		next.PodIP = r.podIP
	default:
		return
	}
	next.PodIPs = []corev1.PodIP{{IP: next.PodIP}}
}

// keepReason keeps what belongs to a phase that has not changed, and a phase
// that is final, whoever set it.
func (r *Runtime) keepReason(pod *corev1.Pod, next *corev1.PodStatus) {
	for _, old := range []corev1.PodStatus{r.status, pod.Status} {
		if isTerminal(old.Phase) && !isTerminal(next.Phase) {
			next.Phase = old.Phase
		}
	}
	if next.Phase != pod.Status.Phase {
		return
	}
	next.Reason, next.Message = pod.Status.Reason, pod.Status.Message
}

// conditions returns those of others as they are in the pod, and the kubelet's.
func (r *Runtime) conditions(pod *corev1.Pod, next corev1.PodStatus, now time.Time) []corev1.PodCondition {
	old := &r.status
	if len(old.Conditions) == 0 {
		old = &pod.Status
	}
	var conditions []corev1.PodCondition
	for _, condition := range pod.Status.Conditions {
		if !kubetypes.PodConditionByKubelet(condition.Type) {
			conditions = append(conditions, condition)
		}
	}
	all := slices.Concat(next.InitContainerStatuses, next.ContainerStatuses)
	conditions = append(conditions, r.resize.list()...)
	for _, condition := range []corev1.PodCondition{
		status.GeneratePodReadyToStartContainersCondition(pod, old, r.sandboxStatus(pod)),
		status.GeneratePodInitializedCondition(pod, old, all, next.Phase),
		status.GeneratePodReadyCondition(pod, old, conditions, all, next.Phase),
		status.GenerateContainersReadyCondition(pod, old, all, next.Phase),
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation},
	} {
		conditions = append(conditions, withTransition(condition, old.Conditions, now))
	}
	return conditions
}

// withTransition sets when the status of a condition was last another one.
func withTransition(condition corev1.PodCondition, old []corev1.PodCondition, now time.Time) corev1.PodCondition {
	condition.LastTransitionTime = seconds(now)
	_, before := podutil.GetPodConditionFromList(old, condition.Type)
	if before != nil && before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	return condition
}

func setCondition(into *corev1.PodStatus, condition corev1.PodCondition) {
	i, _ := podutil.GetPodConditionFromList(into.Conditions, condition.Type)
	if i < 0 {
		into.Conditions = append(into.Conditions, condition)
		return
	}
	into.Conditions[i] = withTransition(condition, into.Conditions, condition.LastTransitionTime.Time)
}

// probe publishes what probes find while the kubelet is busy with the pod:
// readiness, and nothing else.
func (r *Runtime) probe(now time.Time) {
	for _, statuses := range [][]corev1.ContainerStatus{r.status.InitContainerStatuses, r.status.ContainerStatuses} {
		for i := range statuses {
			c := r.containers[statuses[i].Name]
			if c.running() && c.id == statuses[i].ContainerID && statuses[i].State.Running != nil {
				started := c.started(now)
				statuses[i].Started, statuses[i].Ready = &started, c.ready(now)
			}
		}
	}
	pod := r.work.pod
	all := slices.Concat(r.status.InitContainerStatuses, r.status.ContainerStatuses)
	for _, condition := range []corev1.PodCondition{
		status.GeneratePodReadyCondition(pod, &r.status, r.status.Conditions, all, r.status.Phase),
		status.GenerateContainersReadyCondition(pod, &r.status, all, r.status.Phase),
	} {
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		setCondition(&r.status, condition)
	}
}
