// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("The identity of a pod", func() {
	It("is set again with one write, before anything else happens to it", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(3))
		uids := w.uids()
		w.unlabel("sample-0", "statefulset.kubernetes.io/pod-name")
		w.label("sample-1", "statefulset.kubernetes.io/pod-name", "sample-7")
		w.label("sample-1", "apps.kubernetes.io/pod-index", "7")
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		for _, name := range []string{"sample-0", "sample-1"} {
			Expect(podWritesOf(w, name)).To(Equal([]string{
				"patch Pod " + name, "patch Pod/status " + name, "patch Pod " + name, "patch Pod/status " + name,
			}))
		}
		Expect(podWritesOf(w, "sample-2")).To(HaveLen(3))
		for index, name := range []string{"sample-0", "sample-1", "sample-2"} {
			Expect(w.pod(name).Labels).To(And(
				HaveKeyWithValue("statefulset.kubernetes.io/pod-name", name),
				HaveKeyWithValue("apps.kubernetes.io/pod-index", strconv.Itoa(index))))
		}
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		w.expectNoWrites()
	})

	It("is set in the same reconciliation as a change that looks at the pod's version", func(ctx context.Context) {
		w := newWorld(ctx)
		w.createUngated(reference())
		w.unlabel("sample-2", "statefulset.kubernetes.io/pod-name")
		w.setImage("nginx:latest")
		w.manager.Forget()
		w.reconcile()
		Expect(w.manager.Writes("patch Pod")).To(Equal([]string{"patch Pod sample-2", "patch Pod/status sample-2"}))
		Expect(w.pod("sample-2").Labels).To(And(HaveKey("statefulset.kubernetes.io/pod-name"), HaveKey(appsv1beta1.DrainedLabel)))
	})

	It("that cannot be set is reported, and is tried again when the pod changed", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "statefulset.kubernetes.io/pod-name")
		w.refuse("patch Pod sample-1", apierrors.NewForbidden(corev1.Resource("pods"), "sample-1", errors.New("denied by a webhook")))
		w.reconcileFailing()
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedUpdatePod).Message).To(And(
			ContainSubstring("label pod"), ContainSubstring("sample-1 with its identity"), ContainSubstring("denied by a webhook")))
		w.refuse("patch Pod sample-1", apierrors.NewConflict(corev1.Resource("pods"), "sample-1", errors.New("modified")))
		w.reconcileFailing()
		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
		Expect(w.pod("sample-1").Labels).To(HaveKeyWithValue("statefulset.kubernetes.io/pod-name", "sample-1"))
	})

	It("is taken as it is without an index, as releases before that label made it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "apps.kubernetes.io/pod-index")
		w.expectNoWrites()
	})

	It("is not set on a pod that is being deleted, or is to be", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "statefulset.kubernetes.io/pod-name")
		w.unlabel("sample-2", "statefulset.kubernetes.io/pod-name")
		w.deletePod("sample-1")
		w.scale(2)
		w.manager.Forget()
		w.reconcile()
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
	})
})

// podWritesOf returns the manager's writes to a pod.
func podWritesOf(w *world, name string) []string {
	var found []string
	for _, write := range w.manager.Writes("patch Pod") {
		if write == "patch Pod "+name || write == "patch Pod/status "+name {
			found = append(found, write)
		}
	}
	return found
}
