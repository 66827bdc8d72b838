// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A server that refuses the owners of three claims is not asked about thousands. Their pods, and
// those of the claims that were not written, are neither created nor deleted meanwhile.
func TestClaimOwnersEndAfterThreeErrors(t *testing.T) {
	g := NewWithT(t)
	owner := Owner{
		Object: &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "1"}},
		Kind:   appsv1beta1.GroupVersion.WithKind("StatefulSet"),
	}
	var changes []OwnerChange
	for i := range 12 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("claim-%d", i), ResourceVersion: "1"}}
		changes = append(changes, OwnerChange{Claim: claim, Pod: fmt.Sprintf("pod-%d", i), References: []any{owner.Reference()}, Gates: i%2 == 0})
	}
	tries := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			tries++
			switch tries {
			case 1:
				return nil
			case 2:
				return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), obj.GetName(), nil)
			default:
				return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), obj.GetName(), nil)
			}
		},
	}).Build()
	recorder := events.NewFakeRecorder(100)
	pods := NewPods(c, recorder)
	pods.Parallelism = 1

	scheme := runtime.NewScheme()
	g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(owner.Object).Build()
	gated, failures, err := pods.SetClaimOwners(t.Context(), live, owner, changes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tries).To(Equal(5))
	g.Expect(failures.Errs).To(HaveLen(3))
	g.Expect(failures.Conflicts).To(Equal(1))
	g.Expect(recorder.Events).To(HaveLen(3))
	g.Expect(sets.List(gated)).To(Equal([]string{"pod-10", "pod-2", "pod-4", "pod-6", "pod-8"}), "pod-0 has its owner, and the others do not depend on theirs")

	var again []string
	c2 := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			again = append(again, obj.GetName())
			return nil
		},
	}).Build()
	pods.Client = c2
	gated, _, err = pods.SetClaimOwners(t.Context(), live, owner, changes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gated).To(BeEmpty())
	g.Expect(again).To(HaveExactElements("claim-0", "claim-5", "claim-6", "claim-7", "claim-8", "claim-9", "claim-10", "claim-11",
		"claim-1", "claim-2", "claim-3", "claim-4"), "those that failed are tried last")

	pods.Client = c
	gated, failures, err = pods.SetClaimOwners(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), owner, changes[:1])
	g.Expect(err).To(HaveOccurred(), "the set is gone")
	g.Expect(gated).To(BeEmpty())
	g.Expect(failures.Errs).To(BeEmpty())
	g.Expect(tries).To(Equal(5))
}
