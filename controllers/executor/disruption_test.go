// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

func planOf(pods ...*builders.PodBuilder) inplace.Plan {
	plan := inplace.Plan{}
	for _, pod := range pods {
		plan.Pods = append(plan.Pods, inplace.PodState{Pod: pod.Build()})
	}
	return plan
}

// A pod that was changed in service counts as healthy until the kubelet acts.
func TestUncounted(t *testing.T) {
	g := NewWithT(t)
	now := builders.Start.Add(time.Minute)
	changed := builders.Pod("sample-0", "b", "nginx:alpine").Generation(2, 1).Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(now),
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": {ContainerID: "containerd://main-1", Image: "nginx:latest"}},
	})
	g.Expect(uncounted(planOf(builders.Pod("sample-1", "b", "nginx:alpine"), changed), now)).To(Equal("sample-0"))
	g.Expect(uncounted(planOf(builders.Pod("sample-1", "b", "nginx:alpine"), changed.Ready(false, now)), now)).To(BeEmpty())

	between := builders.Pod("sample-0", "b", "nginx:alpine").Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(now), NextContainerImages: map[string]string{"main": "nginx:latest"},
	})
	g.Expect(uncounted(planOf(between), now)).To(BeEmpty(), "it serves between two batches, and waits for nobody")
}

// The controller of the budgets is given its time from when the kubelet reported a
// pod not ready, which can be long after it was taken out of service.
func TestCountedAt(t *testing.T) {
	g := NewWithT(t)
	now := builders.Start.Add(time.Minute)
	pod := func() *builders.PodBuilder { return builders.Pod("sample-0", "b", "nginx:alpine") }
	g.Expect(countedAt(planOf(pod()), now)).To(BeZero())
	g.Expect(countedAt(planOf(pod(), pod().Ready(false, now.Add(-time.Second)), pod().Ready(false, now.Add(-time.Hour))), now)).
		To(BeTemporally("==", now.Add(4*time.Second)))
	g.Expect(countedAt(planOf(pod().Condition(corev1.PodReady, corev1.ConditionFalse, now.Add(time.Hour))), now)).To(BeZero(), "a clock that is wrong")
}
