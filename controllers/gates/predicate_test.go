// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/insitu-dev/insitu/test/builders"
)

// While a pod is out of service, the kubelet reports on it again and again.
func TestClosedPassesAPodOnce(t *testing.T) {
	pod := func(gate corev1.ConditionStatus, owner types.UID) *corev1.Pod {
		pod := builders.Pod("sample-0", "a", "nginx").Gated(gate, time.Time{}).Build()
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: owner, Controller: ptr.To(true)}}
		return pod
	}
	could := func(status corev1.ConditionStatus) *corev1.Pod {
		pod := pod("", "1")
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: status})
		return pod
	}
	another := pod(corev1.ConditionFalse, "1")
	another.UID = "another"
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		passes        bool
	}{
		"it is closed":                 {pod(corev1.ConditionTrue, "1"), pod(corev1.ConditionFalse, "1"), true},
		"it stays closed":              {pod(corev1.ConditionFalse, "1"), pod(corev1.ConditionFalse, "1"), false},
		"it is opened":                 {pod(corev1.ConditionFalse, "1"), pod(corev1.ConditionTrue, "1"), false},
		"it comes to another owner":    {pod(corev1.ConditionFalse, "1"), pod(corev1.ConditionFalse, "2"), true},
		"another comes in its place":   {pod(corev1.ConditionFalse, "1"), another, true},
		"it never served, and is seen": {pod("", "1"), pod("", "1"), false},
		"its containers become ready":  {could(corev1.ConditionFalse), could(corev1.ConditionTrue), true},
		"its containers stay ready":    {could(corev1.ConditionTrue), could(corev1.ConditionTrue), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(closed().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.passes))
		})
	}
	NewWithT(t).Expect(closed().Create(event.CreateEvent{Object: pod("", "1")})).To(BeTrue())
	NewWithT(t).Expect(closed().Create(event.CreateEvent{Object: pod(corev1.ConditionTrue, "1")})).To(BeFalse())
}
