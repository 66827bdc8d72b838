// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A claim that a user makes by hand while the operator recreates it", Serial, func() {
	DescribeTable("keeps its pod away, until a user says what it is to have", func(ctx context.Context, d database) {
		const pod, name = "sample-2", "data-sample-2"
		program := buildManager(ctx)
		stopOperator(ctx)
		namespace := newRecreateNamespace(ctx)
		manager := newManagerProcess(program, namespace)
		deletions := 0
		manager.isFatal = func(_ int, w write) bool {
			if w.String() != "delete persistentvolumeclaims "+name {
				return false
			}
			deletions++
			return deletions == 1
		}
		manager.start()
		set := create(ctx, d.set(namespace, classStandard).With(recreating(nil)))
		writers := startWriters(ctx, d, set)
		old := boundTo(ctx, namespace)[name]

		By("creating the claim when the operator has deleted it, and is dead")
		change(ctx, set, toClass(classNoatime))
		Eventually(ctx, manager.isAlive).WithTimeout(volumePatience).Should(BeFalse())
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"by": "hand"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To(classNoatime), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, claim.DeepCopy()) }).Should(Succeed())
		Eventually(ctx, claimNamed).WithArguments(namespace, name).Should(HaveField("Status.Phase", corev1.ClaimBound))
		manager.start()

		message := waitBlocker(ctx, set, pod, "VolumeNotRestored")
		AddReportEntry("VolumeNotRestored", message)
		Expect(message).To(And(ContainSubstring(old), ContainSubstring(undoAnnotation+"="+old), ContainSubstring("insitu.dev/begin-empty=true")))
		Consistently(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod}, &corev1.Pod{}))
		}).WithTimeout(5*time.Second).Should(BeTrue(), "the pod does not run on an empty volume")

		By("asking for the volume that has the data")
		undo(ctx, namespace, name, "previous")
		Eventually(ctx, boundTo).WithArguments(namespace).WithTimeout(volumePatience).Should(HaveKeyWithValue(name, old))
		writers.expectGoOn(ctx)
		writers.expectAllStored(ctx)
	},
		Entry("PostgreSQL", postgres),
		Entry("Redis", redis),
	)
})
