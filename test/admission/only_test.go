// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyInsituChangesImages(t *testing.T) {
	const namespace, refusal = "insitu-only", "images of pods in namespace insitu-only are changed by their workloads only"
	install(t, "only-insitu-changes-images.yaml", namespace, nil)
	admin := clientOf(t, "")
	a, b := state{imageA, "100m", imageB}, state{imageB, "100m", imageB}
	pod := newPod(t, namespace, "web", a, true)
	await(t, func() error { return setImage(t, admin, pod, imageB, client.DryRunAll) }, refusal)

	t.Run("Insitu", func(t *testing.T) {
		mustBeMade(t, operator(t), newPod(t, namespace, "changed", a, false), a, b)
		mustBeMade(t, operator(t), newPod(t, namespace, "changed-beside", a, false), a, state{imageA, "100m", imageA})
		mustBeMade(t, operator(t), newPod(t, namespace, "resized", a, false), a, state{imageA, "200m", imageB})
	})
	t.Run("any other client", func(t *testing.T) {
		for _, user := range []string{"", "jane", "system:serviceaccount:insitu-system:default", "system:serviceaccount:other:insitu-manager"} {
			g, c := NewWithT(t), clientOf(t, user, "system:masters")
			g.Expect(setImage(t, c, pod, imageB)).To(MatchError(ContainSubstring(refusal)), user)
			g.Expect(setSidecar(t, c, pod, imageA)).To(MatchError(ContainSubstring(refusal)), user)
			g.Expect(debug(t, c, pod, imageA)).To(MatchError(ContainSubstring("no containers are added to live pods in namespace "+namespace)), user)
		}
	})
	t.Run("an engine with another account", func(t *testing.T) {
		mustBeDenied(t, clientOf(t, "system:serviceaccount:other:insitu-manager", "system:masters"), pod, a, b, refusal)
	})
	t.Run("what is no image", func(t *testing.T) {
		g := NewWithT(t)
		labeled := pod.DeepCopy()
		labeled.Labels["looked"] = "at"
		g.Expect(admin.Patch(t.Context(), labeled, client.MergeFrom(pod))).To(Succeed())
	})
	t.Run("the kubelet and the garbage collector", func(t *testing.T) {
		g := NewWithT(t)
		current := &corev1.Pod{}
		g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(pod), current)).To(Succeed())
		kubelet := clientOf(t, "system:node:node-1", "system:masters", "system:nodes")
		current.Status.Message = "seen"
		g.Expect(kubelet.Status().Update(t.Context(), current)).To(Succeed())
		collector := clientOf(t, "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
		owned := current.DeepCopy()
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: ptr.To(true)}}
		g.Expect(collector.Patch(t.Context(), owned, client.MergeFrom(current))).To(Succeed())
		g.Expect(collector.Delete(t.Context(), owned, client.GracePeriodSeconds(0))).To(Succeed())
	})
	t.Run("elsewhere", func(t *testing.T) {
		other := newPod(t, "default", "insitu-only", a, false)
		g := NewWithT(t)
		g.Expect(setImage(t, admin, other, imageB)).To(Succeed())
		g.Expect(debug(t, admin, other, imageA)).To(Succeed())
	})
}
