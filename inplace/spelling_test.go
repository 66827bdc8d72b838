// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/test/builders"
)

// A DaemonSet of ours calls its policy otherwise.
func TestMessagesNameTheFieldOfThePolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		policy   appsv1beta1.PodUpdateStrategyType
		to, want string
	}{
		"recreated": {reCreate, "b", "rollingUpdateType changes no pod in place"},
		"kept":      {inPlaceOnly, "env", "rollingUpdateType InPlaceOnly keeps the pod as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions, pod := testRevisions(t), settledPod().Build()
			target := Target{Revision: *revisions[tc.to], Policy: tc.policy, PolicyField: "rollingUpdateType"}
			said := Next(PodFacts{Pod: pod, From: revisions[RevisionOf(pod)]}, target, after(20)).Message
			g.Expect(said).To(ContainSubstring(tc.want))
			g.Expect(said).NotTo(ContainSubstring("podUpdatePolicy"))
		})
	}
}

// Workloads of Kubernetes are told of their labels and annotations, and ours of their
// fields.
func TestMessagesNameWhatTheirKindHas(t *testing.T) {
	ours, err := NewTemplate(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:a"}}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	pod := builders.Pod("web-0", "a", "app:a").Build()
	only := appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	keptFor := func(reason string) func(Target) string {
		return func(target Target) string { return (&situation{target: &target}).keptSizesMessage(reason, "no") }
	}
	for name, tc := range map[string]struct {
		policy       appsv1beta1.PodUpdateStrategyType
		say          func(Target) string
		ours, native string
	}{
		"refused": {only, func(target Target) string {
			return situationOf(PodFacts{Pod: pod}, &target, after(0)).recreateIfAllowed(&Refusal{Reason: ReasonFieldImmutable, Message: "no"}).Message
		}, "podUpdatePolicy InPlaceOnly keeps the pod as it is", "label insitu.dev/update-policy=InPlaceOnly keeps the pod as it is"},
		"its size is refused": {only, keptFor(ReasonResizeDenied),
			"podUpdatePolicy InPlaceOnly keeps the pod at its old size", "label insitu.dev/update-policy=InPlaceOnly keeps the pod at its old size"},
		"a node cannot": {"", keptFor(string(resize.NodeUnsupported)),
			"inPlaceUpdateStrategy.resize.onInfeasible Recreate", `annotation insitu.dev/resize and "onInfeasible":"Recreate"`},
		"a node has no room": {"", keptFor(ReasonResizeInfeasible),
			"inPlaceUpdateStrategy.resize.onInfeasible Recreate", `annotation insitu.dev/resize and "onInfeasible":"Recreate"`},
		"a node fails": {"", keptFor(ReasonResizeError),
			"inPlaceUpdateStrategy.resize.onError Recreate", `annotation insitu.dev/resize and "onError":"Recreate"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.say(Target{Revision: Revision{Name: "b", Template: ours}, Policy: tc.policy})).To(ContainSubstring(tc.ours))
			said := tc.say(Target{Revision: Revision{Name: "b", Template: ours.Native()}, Policy: tc.policy})
			g.Expect(said).To(ContainSubstring(tc.native))
			g.Expect(said).NotTo(Or(ContainSubstring("podUpdatePolicy"), ContainSubstring("inPlaceUpdateStrategy")))
		})
	}
}
