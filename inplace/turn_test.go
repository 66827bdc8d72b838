// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// betweenBatches is a pod that serves, and has one container still to change.
func betweenBatches(name string) *builders.PodBuilder {
	return builders.Pod(name, "b", alpineImage).Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(patched), NextContainerImages: map[string]string{"main": latestImage},
	})
}

func TestTheNextBatchOfAServingPodKeepsTheBudget(t *testing.T) {
	for want, cannot := range map[string]*Refusal{"MarkNotReady": nil, "Patch": unheeded} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			planOf := func(w Workload) Plan {
				w.Target.CannotDrain = cannot
				return MakePlan(w, patched.Add(1))
			}
			plan := planOf(workload(t, 1, betweenBatches("sample-0"), updated("sample-1")))
			g.Expect(moves(plan)).To(ConsistOf(want + " sample-0"))

			plan = planOf(workload(t, 1, betweenBatches("sample-0"), notReady(updated("sample-1"))))
			g.Expect(plan.Moves).To(BeEmpty())

			plan = planOf(workload(t, 2, betweenBatches("sample-0"), betweenBatches("sample-1"), notReady(updated("sample-2"))))
			g.Expect(plan.Moves).To(HaveLen(1), "one of two")

			w := workload(t, 1, betweenBatches("sample-0"), notReady(updated("sample-1")))
			w.MinReadySeconds = int32(patched.Sub(builders.Start).Seconds()) + 10
			g.Expect(moves(planOf(w))).To(ConsistOf(want+" sample-0"), "it does not count yet")
		})
	}
}

// A pod that is not available for its lifecycle alone serves while it waits for
// its turn. Others may wait for it.
func TestAPodThatWaitsForItsTurnIsTakenIn(t *testing.T) {
	g := NewWithT(t)
	pod := inService("sample-0").Label(appsv1beta1.LifecycleStateKey, string(stateStarting)).
		With(func(p *corev1.Pod) { p.Finalizers = []string{drainFinalizer} })
	w := workload(t, 1, pod)
	w.Replicas, w.Target.Lifecycle = 2, &appsv1beta1.Lifecycle{PreNormal: hook(false)}
	plan := MakePlan(w, planned)
	g.Expect(plan.Moves).To(HaveLen(1))
	g.Expect(plan.Moves[0].Step.Lifecycle).To(Equal(stateNormal))
}
