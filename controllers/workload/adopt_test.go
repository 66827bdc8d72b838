// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// indexed returns a client that finds objects as the manager's does.
func indexed(objects ...client.Object) client.Client {
	builder := fake.NewClientBuilder().WithObjects(objects...)
	for _, index := range podcache.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	return builder.Build()
}

// The cache shows that a pod has lost its owner, and not yet what became of its revision.
func TestOrphanedRevisionsAreReadFromTheServer(t *testing.T) {
	kind := appsv1beta1.GroupVersion.WithKind("StatefulSet")
	set := func(uid types.UID) *appsv1beta1.StatefulSet {
		return &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: uid}}
	}
	revision := func(owners ...metav1.OwnerReference) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample-1", Labels: map[string]string{"app": "sample", "controller-revision-hash": "1"}, OwnerReferences: owners}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample-0", Labels: map[string]string{"app": "sample"}}}
	before, now := *metav1.NewControllerRef(set("before"), kind), *metav1.NewControllerRef(set("now"), kind)
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
			orphans, err := ListOrphans(t.Context(), indexed(pod, tc.cached), indexed(tc.live), set("now"), Own{labels.Everything(), func(*corev1.Pod) bool { return true }})
			g.Expect(apierrors.IsConflict(err)).To(Equal(tc.conflicts), "%v", err)
			g.Expect(orphans.Revisions).To(HaveLen(tc.found))
		})
	}
}

// A policy refuses the new owner of one pod: the others are adopted.
func TestWhatCannotBeAdoptedDoesNotStopTheOthers(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", Generation: 1}}
	revisions := []*appsv1.ControllerRevision{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-2"}},
	}
	var pods []*corev1.Pod
	for name, revision := range map[string]string{"web-0": "web-1", "web-7": "web-1", "web-8": "web-2"} {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"controller-revision-hash": revision}}})
	}
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set, revisions[0], revisions[1], pods[0], pods[1], pods[2]).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if name := obj.GetName(); name == "web-7" {
					return apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New("denied by a policy"))
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()

	left, failures, err := Adopt(t.Context(), c, c, Owner{Object: set, Kind: appsv1beta1.GroupVersion.WithKind("StatefulSet")}, Orphans{Revisions: revisions, Pods: pods})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sets.List(left)).To(Equal([]string{"web-7"}))
	g.Expect(failures.Errs).To(ConsistOf(MatchError(ContainSubstring("web-7"))))
	for _, name := range []string{"web-0", "web-8"} {
		pod := &corev1.Pod{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, pod)).To(Succeed())
		g.Expect(metav1.IsControlledBy(pod, set)).To(BeTrue())
	}
}

// Two sets of which one has the other's name as its beginning may have the same labels.
func TestRevisionsOfOtherWorkloadsAreNotAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		revision string
		labels   map[string]string
		want     bool
	}{
		"ours":                          {"web-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, true},
		"of OpenKruise":                 {"web-696d978558", map[string]string{"controller.kubernetes.io/hash": "696d978558"}, true},
		"of a set with a longer name":   {"web-api-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, false},
		"of a set with another name":    {"db-5b7c89bf46", map[string]string{"controller-revision-hash": "5b7c89bf46"}, false},
		"with another hash in its name": {"web-5b7c89bf46", map[string]string{"controller-revision-hash": "696d978558"}, false},
		"without a hash":                {"web-", map[string]string{"controller-revision-hash": ""}, false},
		"without labels":                {"web-5b7c89bf46", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: test.revision, Labels: test.labels}}
			NewWithT(t).Expect(isRevisionOf(set, revision)).To(Equal(test.want))
		})
	}
}
