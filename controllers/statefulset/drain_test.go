// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// endpointSlice makes the slice of a Service that sends traffic to a pod.
func (w *world) endpointSlice(pod *corev1.Pod) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{"10.0.0.1"},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: w.namespace, Name: pod.Name, UID: pod.UID},
		}},
	}
	Expect(w.api.Create(w.ctx, slice)).To(Succeed())
	return slice
}

var _ = Describe("A pod that is drained", func() {
	It("is not changed while an EndpointSlice sends it traffic", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		slice := w.endpointSlice(w.pod("sample-2"))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionFalse))
		Expect(w.status().Blockers).To(ContainElement(And(
			HaveField("Pod", "sample-2"), HaveField("Step", string(inplace.Draining)),
			HaveField("Reason", inplace.ReasonEndpointsReady), HaveField("Message", ContainSubstring("Service web")))))
		w.expectNoWrites()

		slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false)}
		Expect(w.api.Update(w.ctx, slice)).To(Succeed())
		w.settle()
		w.expectSettled(3)
	})

	It("is not held up by the slice of a pod of the same name before it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		stale := w.pod("sample-2")
		stale.UID = "11111111-1111-1111-1111-111111111111"
		w.endpointSlice(stale)
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
	})

	It("is not changed before the kubelet has reported it not ready", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:latest")
		w.kubelet.Away["sample-2"] = true
		w.settle()
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.status().Blockers).To(ContainElement(And(
			HaveField("Pod", "sample-2"), HaveField("Reason", inplace.ReasonStillReady))))
		w.kubelet.Away["sample-2"] = false
		w.settle()
		w.expectSettled(3)
	})

	It("stays out of service for the grace period, and not much longer", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().GracePeriod(60))
		w.setImage("nginx:latest")
		w.reconcile()
		w.clock.Step(2 * time.Second)
		w.kubelet.Sync(w.ctx)
		result := w.reconcile()
		Expect(result.RequeueAfter).To(Equal(60 * time.Second))
		w.clock.Step(59 * time.Second)
		Expect(w.reconcile().RequeueAfter).To(Equal(time.Second))
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		w.clock.Step(time.Second)
		w.reconcile()
		Expect(w.images()).To(HaveKeyWithValue("sample-2", "nginx:latest"))
	})

	// The pod changes between the decision and the write (openkruise/kruise#2276):
	// the write is refused, and nothing of what was done for it is undone or done
	// twice.
	It("is changed once when the write meets a conflict", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().GracePeriod(10))
		w.manager.Forget()
		w.setImage("nginx:latest")
		conflicts := 0
		w.manager.Before = func(write string, _ client.Object) error {
			if write != "patch Pod sample-2" || conflicts > 0 {
				return nil
			}
			conflicts++
			pod := w.pod("sample-2")
			before := pod.DeepCopy()
			pod.Annotations = map[string]string{"another": "client"}
			return w.api.Patch(w.ctx, pod, client.MergeFrom(before))
		}
		for conflicts == 0 {
			result := w.reconcile()
			Expect(w.manager.Writes("patch Pod ")).To(BeEmpty())
			w.kubelet.Sync(w.ctx)
			if conflicts > 0 {
				Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Second)), "it is tried again soon")
			}
			w.clock.Step(time.Second)
		}
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionFalse), "it is still drained")
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Writes("patch Pod/status sample-2")).To(HaveLen(2), "drained once, put back once")
		Expect(w.manager.Writes("patch Pod sample-2")).To(HaveLen(1))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		Expect(w.pod("sample-2").Annotations).To(HaveKeyWithValue("another", "client"))
		Expect(conditionTypes(w.refresh())).To(HaveLen(3), "a conflict is no failure")
	})

	It("that was replaced meanwhile is not touched", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:latest")
		replaced := false
		w.manager.Before = func(write string, _ client.Object) error {
			if write == "patch Pod/status sample-2" && !replaced {
				replaced = true
				old := w.pod("sample-2")
				if err := w.api.Delete(w.ctx, old, client.GracePeriodSeconds(0)); err != nil {
					return err
				}
				pod := barePod(w.namespace, "sample-2", old.Labels)
				pod.OwnerReferences, pod.Spec.ReadinessGates = old.OwnerReferences, old.Spec.ReadinessGates
				return w.api.Create(w.ctx, pod)
			}
			return nil
		}
		w.reconcile()
		Expect(replaced).To(BeTrue())
		Expect(stage.PodConditionStatus(w.pod("sample-2"), "InPlaceUpdateReady")).To(Equal(corev1.ConditionUnknown))
		Expect(conditionTypes(w.refresh())).To(HaveLen(3), "that is no failure")
		Expect(w.recorder.Events("FailedUpdatePodInPlace")).To(BeEmpty())
		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
	})

	It("for a recreation, is deleted only if it is still the same", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.change(setEnv)
		touched := false
		w.manager.Before = func(write string, _ client.Object) error {
			if write != "delete Pod sample-2" || touched {
				return nil
			}
			touched = true
			pod := w.pod("sample-2")
			before := pod.DeepCopy()
			pod.Annotations = map[string]string{"another": "client"}
			return w.api.Patch(w.ctx, pod, client.MergeFrom(before))
		}
		result := w.reconcile()
		Expect(touched).To(BeTrue())
		Expect(w.manager.Writes("delete Pod")).To(BeEmpty())
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		w.settle()
		w.expectSettled(3)
	})
})
