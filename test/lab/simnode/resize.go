// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// neverDone is the value of ResizeAnnotation for a resize that hangs.
const neverDone = "InProgress"

// resizeConditions are the conditions of a pod's resize, nil if there is none.
type resizeConditions struct {
	pending, inProgress *corev1.PodCondition
}

func (c resizeConditions) list() []corev1.PodCondition {
	var conditions []corev1.PodCondition
	for _, condition := range []*corev1.PodCondition{c.pending, c.inProgress} {
		if condition != nil {
			conditions = append(conditions, *condition)
		}
	}
	return conditions
}

// allocate decides about the resources that the spec asks for, and returns the
// pod as the kubelet treats it: with the resources it has promised.
func (r *Runtime) allocate(pod *corev1.Pod, facts Facts) *corev1.Pod {
	wanted, changed := r.wantsResize(pod)
	switch {
	case !changed:
		r.resize.pending = nil
	case pod.DeletionTimestamp != nil || isTerminal(r.status.Phase):
	default:
		if reason, message := r.refuse(pod, facts); reason != "" {
			r.resize.pending = resizeCondition(corev1.PodResizePending, r.resize.pending, corev1.PodCondition{
				Reason: reason, Message: message, ObservedGeneration: pod.Generation,
			}, facts.Now)
			r.wakeAt(facts.Now.Add(r.timing.Resync))
			break
		}
		r.allocated = wanted
		r.resize = resizeConditions{inProgress: resizeCondition(corev1.PodResizeInProgress, nil,
			corev1.PodCondition{ObservedGeneration: pod.Generation}, facts.Now)}
	}
	allocated := pod.DeepCopy()
	for _, spec := range allContainers(allocated) {
		promised := r.allocated[spec.Name]
		spec.Resources = *promised.DeepCopy()
	}
	if !r.resizing(allocated) {
		r.resize.inProgress = nil
	} else if r.resize.inProgress == nil {
		r.resize.inProgress = resizeCondition(corev1.PodResizeInProgress, nil,
			corev1.PodCondition{ObservedGeneration: pod.Generation}, facts.Now)
	}
	return allocated
}

// wantsResize returns the resources in the spec by container, and whether they
// are others than those promised. What a new container asks for is promised.
func (r *Runtime) wantsResize(pod *corev1.Pod) (wanted map[string]corev1.ResourceRequirements, changed bool) {
	wanted = map[string]corev1.ResourceRequirements{}
	for _, spec := range allContainers(pod) {
		wanted[spec.Name] = *spec.Resources.DeepCopy()
		promised, ok := r.allocated[spec.Name]
		if !ok {
			r.allocated[spec.Name] = wanted[spec.Name]
			continue
		}
		changed = changed || len(resized(promised, spec.Resources)) > 0
	}
	return wanted, changed
}

// refuse returns why the node does not accept a resize, or an empty reason.
func (r *Runtime) refuse(pod *corev1.Pod, facts Facts) (reason, message string) {
	switch r.knobs.resize {
	case corev1.PodReasonDeferred, corev1.PodReasonInfeasible:
		return r.knobs.resize, "Resize is refused by annotation " + ResizeAnnotation
	}
	if err := facts.Fits(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})); err != nil {
		return corev1.PodReasonDeferred, err.Error()
	}
	return "", ""
}

// resizing tells whether a running container has other resources than those
// promised.
func (r *Runtime) resizing(allocated *corev1.Pod) bool {
	for _, spec := range allContainers(allocated) {
		c := r.containers[spec.Name]
		if c.running() && len(resized(c.resources, spec.Resources)) > 0 {
			return true
		}
	}
	return false
}

// applyResize returns what gives running containers their new resources.
func (r *Runtime) applyResize(todo actions) []operation {
	if len(todo.resize) == 0 || r.knobs.resize == neverDone {
		return nil
	}
	return []operation{{name: "resize", takes: r.timing.Resize, done: func(time.Time) {
		for _, spec := range todo.resize {
			if c := r.containers[spec.Name]; c.running() {
				c.resources = *spec.Resources.DeepCopy()
			}
		}
	}}}
}

// podResources returns the sums of what is in force.
func (r *Runtime) podResources(pod *corev1.Pod) *corev1.ResourceRequirements {
	actual := pod.DeepCopy()
	for _, spec := range allContainers(actual) {
		if c := r.containers[spec.Name]; c.running() {
			spec.Resources = *c.resources.DeepCopy()
		}
	}
	opts := resourcehelper.PodResourcesOptions{}
	return &corev1.ResourceRequirements{
		Requests: resourcehelper.PodRequests(actual, opts),
		Limits:   resourcehelper.PodLimits(actual, opts),
	}
}

// resizeOf tells whether a running container gets other resources, and whether
// its resize policy asks for a restart.
func resizeOf(spec *corev1.Container, c *container) (resize, restart bool) {
	names := resized(c.resources, spec.Resources)
	for _, policy := range spec.ResizePolicy {
		if names[policy.ResourceName] && policy.RestartPolicy == corev1.RestartContainer {
			restart = true
		}
	}
	return len(names) > 0, restart
}

// resized returns the resources that differ. Only CPU and memory can be resized.
func resized(from, to corev1.ResourceRequirements) map[corev1.ResourceName]bool {
	names := map[corev1.ResourceName]bool{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !from.Requests[name].Equal(to.Requests[name]) || !from.Limits[name].Equal(to.Limits[name]) {
			names[name] = true
		}
	}
	return names
}

// resizeCondition returns a condition that is true, since the reason was last
// another one.
func resizeCondition(kind corev1.PodConditionType, old *corev1.PodCondition, next corev1.PodCondition, now time.Time) *corev1.PodCondition {
	next.Type, next.Status = kind, corev1.ConditionTrue
	next.LastProbeTime, next.LastTransitionTime = seconds(now), seconds(now)
	if old != nil && old.Reason == next.Reason {
		next.LastTransitionTime = old.LastTransitionTime
		if old.Message == next.Message && old.ObservedGeneration == next.ObservedGeneration {
			next.LastProbeTime = old.LastProbeTime // nothing to publish
		}
	}
	return &next
}
