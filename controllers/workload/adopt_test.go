// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// The cache shows that a pod has lost its owner, and not yet what became of its revision.
func TestOrphanedRevisionsAreReadFromTheServer(t *testing.T) {
	kind := appsv1beta1.GroupVersion.WithKind("StatefulSet")
	set := func(uid types.UID) *appsv1beta1.StatefulSet {
		return &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: uid}}
	}
	revision := func(owners ...metav1.OwnerReference) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample-1", Labels: map[string]string{"app": "sample"}, OwnerReferences: owners}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample-0", Labels: map[string]string{"app": "sample"}}}
	before, now := *metav1.NewControllerRef(set("before"), kind), *metav1.NewControllerRef(set("now"), kind)
	holding := func(objects ...client.Object) client.Client {
		builder := fake.NewClientBuilder().WithObjects(objects...)
		for _, index := range podcache.Indexes() {
			builder = builder.WithIndex(index.Object, index.Field, index.Values)
		}
		return builder.Build()
	}
	for name, tc := range map[string]struct {
		cached, live *appsv1.ControllerRevision
		found        int
		conflicts    bool
	}{
		"the cache is behind":                    {cached: revision(before), live: revision(), found: 1},
		"it is adopted, and the cache is behind": {cached: revision(before), live: revision(now), conflicts: true},
		"it is adopted":                          {cached: revision(now), live: revision(now)},
		"it belongs to others":                   {cached: revision(before), live: revision(before)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			orphans, err := ListOrphans(t.Context(), holding(pod, tc.cached), holding(tc.live), set("now"), labels.Everything())
			g.Expect(apierrors.IsConflict(err)).To(Equal(tc.conflicts), "%v", err)
			g.Expect(orphans.Revisions).To(HaveLen(tc.found))
		})
	}
}
