// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// minimumGrace is what the kubelet leaves a container after its hook.
	minimumGrace = 2 * time.Second
	// killed is the exit code of a container that was sent SIGKILL.
	killed = 137
)

// kill ends one container of a pod that stays.
func (r *Runtime) kill(pod *corev1.Pod, spec *corev1.Container) operation {
	takes, exitCode := r.stopTime(pod, spec)
	return operation{name: "kill " + spec.Name, takes: takes, done: func(at time.Time) {
		r.containers[spec.Name].end(at, exitCode)
	}}
}

// killAll ends all containers: first the main ones and the init container that
// may be running, together, then the sidecars. The slowest counts.
func (r *Runtime) killAll(pod *corev1.Pod) []operation {
	var main, sidecars []*corev1.Container
	for _, spec := range allContainers(pod) {
		switch {
		case !r.containers[spec.Name].running():
		case isInit(pod, spec.Name) && isSidecar(spec):
			sidecars = append(sidecars, spec)
		default:
			main = append(main, spec)
		}
	}
	var operations []operation
	for _, group := range [][]*corev1.Container{main, sidecars} {
		if len(group) > 0 {
			operations = append(operations, r.killGroup(pod, group))
		}
	}
	return operations
}

func (r *Runtime) killGroup(pod *corev1.Pod, specs []*corev1.Container) operation {
	slowest := func(pod *corev1.Pod) (slowest time.Duration) {
		for _, spec := range specs {
			takes, _ := r.stopTime(pod, spec)
			slowest = max(slowest, takes)
		}
		return slowest
	}
	return operation{name: "kill pod", takes: slowest(pod), done: func(at time.Time) {
		began := at.Add(-slowest(r.work.pod)) // which may have a shorter grace period now
		for _, spec := range specs {
			takes, exitCode := r.stopTime(r.work.pod, spec)
			r.containers[spec.Name].end(began.Add(takes), exitCode)
		}
	}}
}

// finish marks a deleted pod whose containers have ended. Publishing its last
// status is all that remains.
func (r *Runtime) finish(pod *corev1.Pod) operation {
	return operation{name: "finish", done: func(at time.Time) {
		r.finished = true
		r.status = r.generateFinal(pod, at)
	}}
}

// stopTime returns how long it takes to end a container and with which code: a
// preStop hook that sleeps, then what the container needs after SIGTERM, cut off
// by the grace period.
func (r *Runtime) stopTime(pod *corev1.Pod, spec *corev1.Container) (time.Duration, int32) {
	grace := gracePeriod(pod)
	hook := time.Duration(0)
	if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && spec.Lifecycle.PreStop.Sleep != nil {
		hook = min(time.Duration(spec.Lifecycle.PreStop.Sleep.Seconds)*time.Second, grace)
	}
	left := max(grace-hook, minimumGrace)
	stop := r.knobs.stopTime(spec.Name, r.timing.Stop)
	if stop > left {
		return hook + left, killed
	}
	return hook + stop, 0
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	return minimumGrace
}

// shortenGrace ends the killing of a pod sooner if it was deleted once more,
// with a shorter grace period.
func (r *Runtime) shortenGrace(pod *corev1.Pod, now time.Time) {
	if r.work == nil || !r.work.killsPod || gracePeriod(pod) >= gracePeriod(r.work.pod) {
		return
	}
	r.work.pod = pod
	if sooner := now.Add(max(gracePeriod(pod), minimumGrace)); sooner.Before(r.work.until) {
		r.work.until = sooner
	}
}

// allContainers returns init containers and main containers.
func allContainers(pod *corev1.Pod) []*corev1.Container {
	var all []*corev1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}
