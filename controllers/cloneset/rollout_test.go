// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestNeedsSurge(t *testing.T) {
	serving := builders.Pod("sample-aaaaa", "old", "nginx:alpine").Gated(corev1.ConditionTrue, builders.Start).Build()
	marked := builders.Pod("sample-bbbbb", "old", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Build()
	between := builders.Pod("sample-ccccc", "new", "nginx:alpine").With(func(pod *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, appsv1beta1.InPlaceUpdateStateKey, `{"revision": "new", "nextContainerImages": {"main": "nginx:latest"}}`)
	}).Build()
	inPlace := inplace.Step{
		Action: inplace.Patch, State: inplace.Patching, LeadsToPatch: true,
		Change: inplace.Change{Images: []inplace.ImageChange{{Container: "main"}}},
	}
	for name, tc := range map[string]struct {
		state          inplace.PodState
		maxUnavailable int32
		want           bool
	}{
		"nothing to do":                 {inplace.PodState{Pod: serving, Available: true}, 0, false},
		"recreated":                     {inplace.PodState{Pod: serving, Available: true, Step: inplace.Step{Action: inplace.Recreate}}, 1, true},
		"recreated, and not available":  {inplace.PodState{Pod: serving, Step: inplace.Step{Action: inplace.Recreate}}, 1, false},
		"given to a hook to be deleted": {inplace.PodState{Pod: serving, Available: true, Step: inplace.Step{Action: inplace.SetLifecycle, Lifecycle: appsv1beta1.LifecycleStatePreparingDelete}}, 1, true},
		"in place, one may be out":      {inplace.PodState{Pod: serving, Available: true, Step: inPlace}, 1, false},
		"in place, none may be out":     {inplace.PodState{Pod: serving, Available: true, Step: inPlace}, 0, true},
		"in place, begun":               {inplace.PodState{Pod: marked, Step: inPlace}, 0, true},
		"in place, and not available":   {inplace.PodState{Pod: serving, Step: inPlace}, 0, false},
		"in place, without a restart":   {inplace.PodState{Pod: serving, Available: true, Step: inplace.Step{Action: inplace.Patch, State: inplace.Patching, LeadsToPatch: true}}, 0, false},
		"labels only, held by a hook":   {inplace.PodState{Pod: serving, Available: true, Step: inplace.Step{Action: inplace.SetLifecycle, State: inplace.HookHeld, Reason: inplace.ReasonInPlaceUpdateHook, LeadsToPatch: true}}, 0, true},
		"in place, between two batches": {inplace.PodState{Pod: between, Ready: true, Step: inPlace}, 0, true},
		"recreated between two batches": {inplace.PodState{Pod: between, Ready: true, Step: inplace.Step{Action: inplace.Recreate}}, 1, true},
		"back into service":             {inplace.PodState{Pod: marked, Step: inplace.Step{Action: inplace.MarkReady, State: inplace.Verifying}}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := builders.CloneSet("default", "sample", "nginx:alpine").MaxSurge(1).MaxUnavailable(tc.maxUnavailable).Build()
			NewWithT(t).Expect((&scope{set: set}).needsSurge(tc.state)).To(Equal(tc.want))
		})
	}
}
