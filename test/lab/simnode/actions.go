// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// actions are the containers that a sync kills, starts and resizes, in order.
type actions struct {
	kill, start []*corev1.Container
	// resize holds running containers whose resources change without restart.
	resize []*corev1.Container
	// killPod says that the pod has come to its end.
	killPod bool
}

// computeActions compares the containers that are there with the spec.
func (r *Runtime) computeActions(pod *corev1.Pod, now time.Time) actions {
	var todo actions
	if !r.computeInitActions(pod, now, &todo) || todo.killPod {
		return todo
	}
	kept := 0
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		existing := r.containers[spec.Name]
		switch {
		case !existing.running():
			if mustRestart(pod, spec, existing) {
				todo.start = append(todo.start, spec)
			}
		case !r.keep(spec, existing, &todo):
			todo.kill = append(todo.kill, spec)
			todo.start = append(todo.start, spec)
		default:
			kept++
		}
	}
	todo.killPod = kept == 0 && len(todo.start) == 0
	return todo
}

// keep tells whether a running container stays, and notes if it is resized.
func (r *Runtime) keep(spec *corev1.Container, existing *container, todo *actions) bool {
	if existing.changed(spec) {
		return false
	}
	resize, restart := resizeOf(spec, existing)
	if restart {
		return false
	}
	if resize {
		todo.resize = append(todo.resize, spec)
	}
	return true
}

// computeInitActions looks at init containers and sidecars, and tells whether
// all of them have done their part, so that main containers may start. It goes
// backwards: the last that has ever run says how far the pod has come.
func (r *Runtime) computeInitActions(pod *corev1.Pod, now time.Time, todo *actions) (initialized bool) {
	specs := pod.Spec.InitContainers
	if len(specs) == 0 {
		return true
	}
	initialized = slices.ContainsFunc(pod.Spec.Containers, func(spec corev1.Container) bool {
		return r.containers[spec.Name] != nil
	})
	reached := initialized
	for i := len(specs) - 1; i >= 0; i-- {
		spec, existing := &specs[i], r.containers[specs[i].Name]
		if existing == nil {
			if reached && isSidecar(spec) {
				todo.start = append(todo.start, spec)
			}
			continue
		}
		done := r.initDone(spec, reached, now)
		r.computeInitAction(pod, spec, reached, todo)
		if done && i == len(specs)-1 {
			initialized = true
		}
		if done && !reached && i < len(specs)-1 {
			todo.start = append(todo.start, &specs[i+1])
		}
		reached = true
	}
	if !reached {
		todo.start = append(todo.start, &specs[0])
	}
	slices.Reverse(todo.start)
	slices.Reverse(todo.kill)
	return initialized
}

// initDone tells whether an init container that was started before lets the
// next one start. Reached says that a later one has been started already.
func (r *Runtime) initDone(spec *corev1.Container, reached bool, now time.Time) bool {
	existing := r.containers[spec.Name]
	if isSidecar(spec) {
		return existing.started(now)
	}
	return !reached && existing.ended != nil && existing.ended.ExitCode == 0
}

// computeInitAction notes what is to be done about an init container that was
// started before.
func (r *Runtime) computeInitAction(pod *corev1.Pod, spec *corev1.Container, reached bool, todo *actions) {
	existing := r.containers[spec.Name]
	switch {
	case isSidecar(spec):
		if existing.running() && r.keep(spec, existing, todo) {
			return
		}
		if existing.running() {
			todo.kill = append(todo.kill, spec)
		}
		todo.start = append(todo.start, spec)
	case reached, existing.running(), existing.ended.ExitCode == 0:
	case mustRestart(pod, spec, existing):
		todo.start = append(todo.start, spec)
	default:
		todo.killPod = true
	}
}

// mustRestart tells whether a container that is not running is to be started.
func mustRestart(pod *corev1.Pod, spec *corev1.Container, existing *container) bool {
	return existing == nil || podutil.ContainerShouldRestart(*spec, pod.Spec, existing.ended.ExitCode)
}
