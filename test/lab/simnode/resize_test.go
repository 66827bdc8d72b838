// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

var errFull error = &lifecycle.InsufficientResourceError{ResourceName: corev1.ResourceCPU, Requested: 1, Used: 2, Capacity: 2}

// requests returns requirements as "cpu" and "memory".
func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// newResizable returns a running pod whose container restarts for memory only.
func newResizable(t *testing.T) *world {
	t.Helper()
	pod := newPod("main", "nginx:alpine", "other", "nginx:alpine")
	pod.Spec.Containers[0].Resources = requests("100m", "64Mi")
	pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
		{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
		{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
	}
	w := newWorld(t, pod)
	w.pass(time.Second)
	return w
}

func (w *world) resizeTo(resources corev1.ResourceRequirements) {
	w.update(func(spec *corev1.PodSpec) { spec.Containers[0].Resources = resources })
}

// cpu returns what is allocated to main and what is in force.
func (w *world) cpu() (allocated, actual string) {
	main := w.status("main")
	return main.AllocatedResources.Cpu().String(), main.Resources.Requests.Cpu().String()
}

func (w *world) expectCPU(allocated, actual string) {
	w.t.Helper()
	gotAllocated, gotActual := w.cpu()
	w.Expect([]string{gotAllocated, gotActual}).To(Equal([]string{allocated, actual}))
}

func TestResizeAllocatesFirstAndActsThen(t *testing.T) {
	w := newResizable(t)
	w.expectCPU("100m", "100m")
	w.resizeTo(requests("200m", "64Mi"))
	w.expectCPU("200m", "100m")
	progress := w.condition(corev1.PodResizeInProgress)
	w.Expect(progress.Status).To(Equal(corev1.ConditionTrue))
	w.Expect(progress.ObservedGeneration).To(BeEquivalentTo(2))
	w.Expect(w.pod.Status.AllocatedResources.Cpu().String()).To(Equal("200m"))
	w.Expect(w.pod.Status.Resources.Requests.Cpu().String()).To(Equal("100m"))

	w.pass(time.Second)
	w.expectCPU("200m", "200m")
	w.Expect(w.condition(corev1.PodResizeInProgress)).To(BeZero())
	w.Expect(w.status("main").RestartCount).To(BeZero())
	w.Expect(w.pod.Status.Resources.Requests.Cpu().String()).To(Equal("200m"))
}

func TestResizeRestartsWhereThePolicySaysSo(t *testing.T) {
	w := newResizable(t)
	id := w.status("main").ContainerID
	w.resizeTo(requests("100m", "80Mi"))
	w.Expect(w.condition(corev1.PodResizeInProgress).Status).To(Equal(corev1.ConditionTrue))
	w.Expect(w.status("main").ContainerID).To(Equal(id))
	w.pass(time.Second)
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(1))
	w.Expect(w.status("main").Resources.Requests.Memory().String()).To(Equal("80Mi"))
	w.Expect(w.status("other").RestartCount).To(BeZero())
	w.Expect(w.condition(corev1.PodResizeInProgress)).To(BeZero())
}

func TestResizeIsDeferredUntilItFits(t *testing.T) {
	w := newResizable(t)
	w.fits = errFull
	w.resizeTo(requests("200m", "64Mi"))
	pending := w.condition(corev1.PodResizePending)
	w.Expect(pending.Reason).To(Equal(corev1.PodReasonDeferred))
	w.Expect(pending.Message).To(Equal(errFull.Error()))
	w.Expect(pending.ObservedGeneration).To(BeEquivalentTo(2))
	w.expectCPU("100m", "100m")
	w.pass(time.Minute)
	w.expectCPU("100m", "100m")
	w.Expect(w.condition(corev1.PodResizePending).LastProbeTime).To(Equal(pending.LastProbeTime), "nothing new is written")

	w.fits = nil
	w.pass(5 * time.Second)
	w.expectCPU("200m", "200m")
	w.Expect(w.condition(corev1.PodResizePending)).To(BeZero())
}

func TestResizeIsTakenBack(t *testing.T) {
	w := newResizable(t)
	w.fits = errFull
	w.resizeTo(requests("200m", "64Mi"))
	w.Expect(w.condition(corev1.PodResizePending)).NotTo(BeZero())
	w.resizeTo(requests("100m", "64Mi"))
	w.Expect(w.condition(corev1.PodResizePending)).To(BeZero())
	w.Expect(w.pod.Status.ObservedGeneration).To(BeEquivalentTo(3))
}

func TestResizeByAnnotation(t *testing.T) {
	for value, want := range map[string]struct {
		kind              corev1.PodConditionType
		reason            string
		allocated, actual string
	}{
		"Deferred":   {corev1.PodResizePending, corev1.PodReasonDeferred, "100m", "100m"},
		"Infeasible": {corev1.PodResizePending, corev1.PodReasonInfeasible, "100m", "100m"},
		"InProgress": {corev1.PodResizeInProgress, "", "200m", "100m"},
	} {
		t.Run(value, func(t *testing.T) {
			w := newResizable(t)
			w.annotate(ResizeAnnotation, value)
			w.resizeTo(requests("200m", "64Mi"))
			w.pass(time.Minute)
			w.Expect(w.condition(want.kind).Status).To(Equal(corev1.ConditionTrue))
			w.Expect(w.condition(want.kind).Reason).To(Equal(want.reason))
			w.expectCPU(want.allocated, want.actual)

			w.annotate(ResizeAnnotation, "")
			w.pass(5 * time.Second)
			w.expectCPU("200m", "200m")
		})
	}
}

func TestImageAndResourcesInOneUpdate(t *testing.T) {
	w := newResizable(t)
	w.update(func(spec *corev1.PodSpec) {
		spec.Containers[0].Image = "nginx:latest"
		spec.Containers[0].Resources = requests("200m", "64Mi")
	})
	w.pass(time.Second)
	w.expectCPU("200m", "200m")
	w.Expect(w.status("main").RestartCount).To(BeEquivalentTo(1))
}
