// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// settleTime is after how long a size in the status that is not the one in the
// spec is taken for what the node made of it: kernels round, and plugins of the
// runtime choose sizes of their own.
const settleTime = 15 * time.Second

// State is what became of a resize on the node.
type State string

const (
	// Done means that the node has done what it will, or there is nothing of ours to do.
	Done State = ""
	// NotObserved means that the kubelet has not reported that it saw the change.
	NotObserved State = "NotObserved"
	// InProgress means that the kubelet has accepted the change and is making it.
	InProgress State = "InProgress"
	// Deferred means that the node has no room now.
	Deferred State = "Deferred"
	// Infeasible means that the node can never make the change.
	Infeasible State = "Infeasible"
	// Failed means that the kubelet has accepted the change and cannot make it; it
	// tries again.
	Failed State = "Error"
)

// Progress tells how far the resizes of a pod by the operator have come.
type Progress struct {
	State State
	// Message says what is missing, in the words of the kubelet where it has some.
	Message string
	// Since is when the pod came into this state; zero if it does not tell.
	Since time.Time
	// Recheck is when time alone makes it Done; zero if it does not.
	Recheck time.Time
	// Restarts is true when containers are to be restarted for it that have not been.
	Restarts bool
}

// IsUnderWay reports whether the node has been told of a change, and is to make it
// any moment.
func (p Progress) IsUnderWay() bool {
	return p.State == NotObserved || p.State == InProgress
}

// Observe judges, by what a pod shows, the amounts that the operator wrote last, at
// a moment that Written returns with them. What others have written is not judged.
//
// The kubelet reports the generation that it saw in the same update as the
// conditions and allocatedResources for it (KEP-1287), and only later the sizes in
// force. It may round these, so a difference there counts for a time only. Of a
// container that never started it reports neither, and the conditions tell all. The
// generation in a condition is not looked at: it is the one at which that arose.
func Observe(pod *corev1.Pod, own sets.Set[Field], written, now time.Time) Progress {
	allocated, inForce, unknown := differing(pod, own)
	if allocated == nil && inForce == nil && !unknown && !mayStillAct(pod, own, written, now) {
		return Progress{}
	}
	progress := observe(pod, allocated, inForce, written, now)
	if progress.State == Done {
		return progress
	}
	progress.Since = latest(progress.Since, written)
	progress.Restarts = awaitsRestart(pod, own)
	return progress
}

// mayStillAct reports whether the kubelet has not seen that a size was taken back
// which it was about to make: then it shows what it had before, for now.
func mayStillAct(pod *corev1.Pod, own sets.Set[Field], written, now time.Time) bool {
	if len(own) == 0 || isObserved(pod) {
		return false
	}
	return now.Before(written.Add(settleTime)) ||
		condition(pod, corev1.PodResizePending) != nil || condition(pod, corev1.PodResizeInProgress) != nil
}

// isObserved reports whether the kubelet has reported that it saw the present spec;
// one that reports no generation is taken to have seen it.
func isObserved(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation
}

// observe judges a pod in which the node has not allocated what the spec says of a
// field, or has not made it, or reports nothing.
func observe(pod *corev1.Pod, allocated, inForce *Field, written, now time.Time) Progress {
	if !isObserved(pod) {
		return Progress{
			State:   NotObserved,
			Message: fmt.Sprintf("the kubelet on %s has not reported that it saw the new sizes", pod.Spec.NodeName),
		}
	}
	if pending := condition(pod, corev1.PodResizePending); pending != nil {
		progress := Progress{State: Deferred, Message: pending.Message, Since: pending.LastTransitionTime.Time}
		if pending.Reason == corev1.PodReasonInfeasible {
			progress.State = Infeasible
		}
		return progress
	}
	if running := condition(pod, corev1.PodResizeInProgress); running != nil {
		progress := Progress{State: InProgress, Message: running.Message, Since: running.LastTransitionTime.Time}
		if running.Reason == corev1.PodReasonError {
			progress.State = Failed
		}
		if progress.Message == "" {
			progress.Message = "the kubelet is changing the sizes"
		}
		return progress
	}
	if allocated != nil {
		return Progress{State: InProgress, Message: fmt.Sprintf("the kubelet has not allocated the new %s yet", allocated.inWords())}
	}
	if inForce == nil {
		return Progress{}
	}
	if end := written.Add(settleTime); now.Before(end) {
		return Progress{
			State: InProgress, Recheck: end,
			Message: fmt.Sprintf("the new %s is not in force yet", inForce.inWords()),
		}
	}
	return Progress{}
}

// differing returns the first field of which the node has not allocated what the
// spec says, and the first of which the size in force is another; nil if there is
// none. Unknown is true if it reports of a field neither.
func differing(pod *corev1.Pod, fields sets.Set[Field]) (allocated, inForce *Field, unknown bool) {
	for field := range fields {
		size, there := amountOf(&pod.Spec, field)
		if !there {
			continue
		}
		promised, actual := reported(pod, field)
		unknown = unknown || promised == nil && actual == nil
		if promised != nil && promised.Cmp(size) != 0 {
			allocated = first(allocated, field)
		}
		if actual != nil && !isInForce(pod, field, size, *actual) {
			inForce = first(inForce, field)
		}
	}
	return allocated, inForce, unknown
}

// first returns the first of two fields; nil is none.
func first(a *Field, b Field) *Field {
	if a == nil || compareFields(b, *a) < 0 {
		return &b
	}
	return a
}

// isInForce reports whether a size in force is the one in the spec, or that rounded
// as kernels and cgroup drivers do: systemd to 10 ms of CPU time per second, the
// kernel to pages. What restarts its container is compared exactly.
func isInForce(pod *corev1.Pod, field Field, wanted, actual resource.Quantity) bool {
	if wanted.Cmp(actual) == 0 {
		return true
	}
	if RestartsFor(pod, field) {
		return false
	}
	difference := wanted.DeepCopy()
	difference.Sub(actual)
	tolerance := rounding[field.Resource]
	over := difference.Cmp(tolerance)
	difference.Neg()
	return over <= 0 && difference.Cmp(tolerance) <= 0
}

var rounding = map[corev1.ResourceName]resource.Quantity{
	corev1.ResourceCPU:    resource.MustParse("10m"),
	corev1.ResourceMemory: resource.MustParse("64Ki"),
}

// awaitsRestart reports whether a container that restarts for a field does not have
// what the spec says of it.
func awaitsRestart(pod *corev1.Pod, fields sets.Set[Field]) bool {
	for field := range fields {
		if !RestartsFor(pod, field) {
			continue
		}
		size, there := amountOf(&pod.Spec, field)
		promised, actual := reported(pod, field)
		if there && (promised != nil && promised.Cmp(size) != 0 || actual != nil && actual.Cmp(size) != 0) {
			return true
		}
	}
	return false
}

// reported returns what the status says of a field: what the node has allocated,
// which it says of requests only, and what is in force. Both are nil for a
// container of which nothing is reported.
func reported(pod *corev1.Pod, field Field) (allocated, inForce *resource.Quantity) {
	promised, actual := pod.Status.AllocatedResources, pod.Status.Resources
	if field.Container != "" {
		status := containerStatus(pod, field)
		if status == nil {
			return nil, nil
		}
		promised, actual = status.AllocatedResources, status.Resources
	}
	if !field.Limit && promised != nil {
		allocated = ptr.To(promised[field.Resource])
	}
	if actual == nil {
		return allocated, nil
	}
	if field.Limit {
		return allocated, ptr.To(actual.Limits[field.Resource])
	}
	return allocated, ptr.To(actual.Requests[field.Resource])
}

func containerStatus(pod *corev1.Pod, field Field) *corev1.ContainerStatus {
	statuses := pod.Status.ContainerStatuses
	if field.Sidecar {
		statuses = pod.Status.InitContainerStatuses
	}
	for i := range statuses {
		if statuses[i].Name == field.Container {
			return &statuses[i]
		}
	}
	return nil
}

// condition returns a condition of the pod that is True; nil if there is none.
func condition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
