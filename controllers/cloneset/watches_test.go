// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// A label of the set says which pods count, and a change of it raises no
// generation.
func TestWhatChangesASet(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*appsv1beta1.CloneSet)
		passes bool
	}{
		"the spec": {func(set *appsv1beta1.CloneSet) { set.Generation++ }, true},
		"a label": {func(set *appsv1beta1.CloneSet) {
			set.Labels = map[string]string{appsv1beta1.CloneSetScalingExcludePreparingDeleteKey: "true"}
		}, true},
		"the status": {func(set *appsv1beta1.CloneSet) { set.Status.Replicas++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := builders.CloneSet("default", "sample", "nginx:alpine").Build()
			after := before.DeepCopy()
			tc.change(after)
			NewWithT(t).Expect(changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(tc.passes))
		})
	}
}
