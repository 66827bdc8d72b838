// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

func sized(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To("standard"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

// TestClaimsOfOthers: a claim that another owner controls has the name of one of ours,
// and is left alone.
func TestClaimsOfOthers(t *testing.T) {
	owner := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sample", UID: "ours"}}
	controlledBy := func(kind string, uid types.UID, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "a", UID: uid, Controller: &controller}}
	}
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   volumes.State
	}{
		"no owner":      {nil, volumes.Changing},
		"the set":       {controlledBy("StatefulSet", "ours", true), volumes.Changing},
		"a pod":         {controlledBy("Pod", "its", true), volumes.Changing},
		"an owner only": {controlledBy("Database", "theirs", false), volumes.Changing},
		"another owner": {controlledBy("Database", "theirs", true), volumes.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			claim := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-sample-0", OwnerReferences: test.owners}, Spec: sized("1Gi"),
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: sized("1Gi").Resources.Requests},
			}
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, AllowVolumeExpansion: ptr.To(true)}
			reader := fake.NewClientBuilder().WithObjects([]client.Object{claim, class}...).Build()
			templates := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: sized("2Gi")}}
			claims := NewClaims(reader, owner, func(*corev1.PersistentVolumeClaim) []volumes.Refusal { return nil })
			g.Expect(claims.Read(t.Context(), "sample-0", templates)).To(Succeed())
			steps, err := claims.Steps(t.Context(), PodOfClaims{Name: "sample-0"}, templates, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(steps).To(HaveExactElements(HaveField("State", test.want)))
		})
	}
}
