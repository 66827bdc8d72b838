// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// TestStrayIsDeletedOnce: a snapshot that nothing needs is deleted, and a workload at rest costs
// no further request for it, although what is kept is remembered for minutes.
func TestStrayIsDeletedOnce(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, snapshotv1.AddToScheme, appsv1beta1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-db-0", UID: "claim"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	stray := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "data-db-0-trial", UID: "snapshot", Labels: map[string]string{appsv1beta1.ClaimLabel: claim.Name},
			Annotations: map[string]string{appsv1beta1.RecreateOfAnnotation: "claim"},
		},
		Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claim.Name)}},
	}
	set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "set"}}
	set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.RecreateVolumeClaimUpdateStrategyType
	deletions := 0
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim, stray, set).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, client client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			deletions++
			return client.Delete(ctx, object, options...)
		},
	})
	recorder := events.NewFakeRecorder(10)
	recreator := New(c, c, recorder)
	for i := range 5 {
		session := recreator.Open(workload.Owner{Object: set, Kind: appsv1beta1.StatefulSetKind}, set.Spec.VolumeClaimUpdateStrategy, began.Add(time.Duration(i)*time.Second))
		kept, err := session.Kept(t.Context(), func(string) *corev1.PersistentVolumeClaim { return claim }, func(name string) bool { return name == claim.Name })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept).To(BeEmpty())
	}
	g.Expect(deletions).To(Equal(1))
	g.Expect(recorder.Events).To(HaveLen(1))
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(stray), stray))).To(BeTrue())
}
