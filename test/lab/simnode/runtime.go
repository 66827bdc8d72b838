// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// container is what a container runtime and the kubelet's probes know of one
// container.
type container struct {
	id           string // containerd://<64 hex digits>
	hash         uint64 // of the fields that a change of restarts it for
	image        Image
	restartCount int32
	startedAt    time.Time
	// resources are in force, as opposed to allocated.
	resources corev1.ResourceRequirements

	// startupDone and readyAt are when probes succeed. Zero is never.
	startupDone, readyAt time.Time
	// exitAt is when it ends by itself, with exitCode. Zero is never.
	exitAt   time.Time
	exitCode int32

	// ended is set once the container has ended.
	ended *corev1.ContainerStateTerminated
	// last is how the container before it ended.
	last *corev1.ContainerStateTerminated
}

func (c *container) running() bool { return c != nil && c.ended == nil }

func (c *container) started(now time.Time) bool {
	return c.running() && !c.startupDone.IsZero() && !now.Before(c.startupDone)
}

func (c *container) ready(now time.Time) bool {
	return c.started(now) && !c.readyAt.IsZero() && !now.Before(c.readyAt)
}

// changed tells whether the spec of a running container asks for a restart.
func (c *container) changed(spec *corev1.Container) bool {
	return c.hash != kubecontainer.HashContainer(spec)
}

// lastEnd returns how the latest container that has ended did, or nil.
func (c *container) lastEnd() *corev1.ContainerStateTerminated {
	if c == nil {
		return nil
	}
	if c.ended != nil {
		return c.ended
	}
	return c.last
}

// end stops the container. The kubelet calls an exit with 0 Completed.
func (c *container) end(at time.Time, exitCode int32) {
	if c.ended != nil {
		return
	}
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	c.ended = &corev1.ContainerStateTerminated{
		ExitCode:    exitCode,
		Reason:      reason,
		StartedAt:   seconds(c.startedAt),
		FinishedAt:  seconds(at),
		ContainerID: c.id,
	}
}

// newContainer starts a container in place of previous, which is nil the first
// time.
func (r *Runtime) newContainer(pod *corev1.Pod, spec *corev1.Container, previous *container, image Image, at time.Time) *container {
	created := &container{
		hash:      kubecontainer.HashContainer(spec),
		image:     image,
		startedAt: at,
		resources: *spec.Resources.DeepCopy(),
	}
	if previous != nil {
		created.restartCount = previous.restartCount + 1
		created.last = previous.ended
	}
	created.id = newContainerID(created.hash, string(pod.UID), spec.Name, strconv.Itoa(int(created.restartCount)))

	created.startupDone = at
	if spec.StartupProbe != nil {
		created.startupDone = at.Add(r.timing.Ready)
	}
	created.readyAt = created.startupDone
	if spec.ReadinessProbe != nil {
		created.readyAt = created.startupDone.Add(r.timing.Ready)
	}
	if r.knobs.neverReady(spec) {
		created.readyAt = time.Time{}
	}
	switch {
	case r.knobs.crashes(spec):
		created.exitAt, created.exitCode = at.Add(r.timing.Crash), 1
	case isInit(pod, spec.Name) && !isSidecar(spec):
		created.exitAt = at.Add(r.timing.Init)
	}
	return created
}

const (
	idPrefix = "containerd://"
	// hashDigits is how many hexadecimal digits a container hash has.
	hashDigits = 8
)

// newContainerID returns an ID that ends with the hash of the container's spec.
// A real runtime keeps the hash beside the container; here it has to survive a
// restart in what the API server keeps.
func newContainerID(hash uint64, parts ...string) string {
	return fmt.Sprintf("%s%s%0*x", idPrefix, hexHash(parts...)[hashDigits:], hashDigits, hash)
}

// hashOf returns the hash of the spec that a container was started from.
func hashOf(containerID string) (uint64, bool) {
	if len(containerID) < hashDigits {
		return 0, false
	}
	hash, err := strconv.ParseUint(containerID[len(containerID)-hashDigits:], 16, 64)
	return hash, err == nil
}

// isSidecar tells whether an init container is one that keeps running.
func isSidecar(spec *corev1.Container) bool {
	return spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func isInit(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return true
		}
	}
	return false
}

// seconds is a time as the API server keeps it.
func seconds(t time.Time) metav1.Time {
	return metav1.NewTime(t).Rfc3339Copy()
}
