// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Adopt takes over the containers that an earlier run has left, as a kubelet
// does after a restart: they go on, nothing is started again, and a change of
// the spec since then is seen. Nothing is kept but what the status says.
func (r *Runtime) Adopt(pod *corev1.Pod, now time.Time) {
	r.status = *pod.Status.DeepCopy()
	// What cannot be read is reported by the first Step.
	r.knobs, _ = readKnobs(pod.Annotations)
	if pod.Status.StartTime != nil {
		r.startTime = *pod.Status.StartTime
	}
	if pod.Status.PodIP == "" {
		return
	}
	r.sandbox = true
	for _, spec := range allContainers(pod) {
		statuses := pod.Status.ContainerStatuses
		if isInit(pod, spec.Name) {
			statuses = pod.Status.InitContainerStatuses
		}
		for i := range statuses {
			if statuses[i].Name == spec.Name && statuses[i].ContainerID != "" {
				r.adopt(spec, &statuses[i], now)
			}
		}
	}
}

func (r *Runtime) adopt(spec *corev1.Container, status *corev1.ContainerStatus, now time.Time) {
	c := &container{
		id:           status.ContainerID,
		image:        Image{Name: status.Image, ID: status.ImageID},
		restartCount: status.RestartCount,
		last:         status.LastTerminationState.Terminated,
		ended:        status.State.Terminated,
	}
	// An ID that is not ours has no hash: the container is started again.
	c.hash, _ = hashOf(status.ContainerID)
	if status.State.Waiting != nil { // the container it speaks of is the last one
		c.ended, c.last = c.last, nil
	}
	if status.State.Running != nil {
		c.startedAt = status.State.Running.StartedAt.Time
		c.startupDone = c.startedAt
		if !r.knobs.neverReady(spec) {
			c.readyAt = c.startedAt.Add(r.timing.Ready)
		}
		if r.knobs.crashes(spec) {
			c.exitAt, c.exitCode = now.Add(r.timing.Crash), 1
		}
	}
	if c.ended == nil && status.State.Running == nil {
		return // nothing is known of it: it is started again
	}
	if status.Resources != nil {
		c.resources = *status.Resources.DeepCopy()
	}
	promised := *c.resources.DeepCopy()
	if status.AllocatedResources != nil {
		promised.Requests = status.AllocatedResources.DeepCopy()
	}
	r.allocated[spec.Name] = promised
	r.containers[spec.Name] = c
}
