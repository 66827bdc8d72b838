// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/inplace"
)

// wantedBy returns the pod spec that a pod is on its way to; nil if it stays what it is.
func wantedBy(f Facts, plan planned, isPlanned bool) *corev1.PodSpec {
	if !isPlanned || plan.held || plan.Updated && plan.Step.State == inplace.Settled {
		return nil
	}
	if f.view.Template == nil {
		return nil
	}
	return &f.view.Template.Spec
}

// containers returns what is told of the containers that run along.
func containers(pod *corev1.Pod, wanted *corev1.PodSpec) []Container {
	var found []Container
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		told := newContainer(c, statusOf(pod.Status.ContainerStatuses, c.Name))
		told.want(containerOf(wanted, c.Name))
		found = append(found, told)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if !isSidecar(c) {
			continue
		}
		told := newContainer(c, statusOf(pod.Status.InitContainerStatuses, c.Name))
		told.Sidecar = true
		told.want(containerOf(wanted, c.Name))
		found = append(found, told)
	}
	return found
}

func newContainer(c *corev1.Container, status *corev1.ContainerStatus) Container {
	told := Container{Name: c.Name, Image: c.Image, Resources: sizes(c.Resources), State: "Waiting"}
	if status == nil {
		return told
	}
	told.Ready, told.Restarts = status.Ready, status.RestartCount
	if status.Resources != nil {
		told.Resources = sizes(*status.Resources)
	}
	switch {
	case status.State.Running != nil:
		told.State = "Running"
	case status.State.Waiting != nil && status.State.Waiting.Reason != "":
		told.State = status.State.Waiting.Reason
	case status.State.Terminated != nil && status.State.Terminated.Reason != "":
		told.State = status.State.Terminated.Reason
	}
	return told
}

// want notes what a container is on its way to, where that differs from what it is.
func (c *Container) want(wanted *corev1.Container) {
	if wanted == nil {
		return
	}
	if wanted.Image != c.Image {
		c.WantedImage = wanted.Image
	}
	resources := sizes(wanted.Resources)
	if differ(resources.Requests, c.Resources.Requests) || differ(resources.Limits, c.Resources.Limits) {
		c.WantedResources = &resources
	}
}

// sizes returns the requests and limits of a container alone.
func sizes(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
}

// differ reports whether amounts are wanted that are not there. What the template leaves
// out may be there nevertheless: defaults, and what a limit says of a request.
func differ(wanted, actual corev1.ResourceList) bool {
	for name, amount := range wanted {
		if found := actual[name]; found.Cmp(amount) != 0 {
			return true
		}
	}
	return false
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// sidecarStatuses returns the statuses of the init containers that run along.
func sidecarStatuses(pod *corev1.Pod) []*corev1.ContainerStatus {
	var found []*corev1.ContainerStatus
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			if status := statusOf(pod.Status.InitContainerStatuses, c.Name); status != nil {
				found = append(found, status)
			}
		}
	}
	return found
}

func isSidecar(c *corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// containerOf returns a container of a spec by its name; nil if there is none.
func containerOf(spec *corev1.PodSpec, name string) *corev1.Container {
	if spec == nil {
		return nil
	}
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == name {
			return &spec.InitContainers[i]
		}
	}
	return nil
}
