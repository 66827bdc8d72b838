// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package openkruise_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openkruise/kruise-api/apps/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestContainerRecreateRequest is what a tool does that restarts a container.
func TestContainerRecreateRequest(t *testing.T) {
	g := NewWithT(t)
	theirs, ours := clients(t)
	requests := theirs.AppsV1alpha1().ContainerRecreateRequests(namespace)
	request := &v1alpha1.ContainerRecreateRequest{ObjectMeta: objectMeta(t, requests.Delete), Spec: v1alpha1.ContainerRecreateRequestSpec{
		PodName: "web-0", Containers: []v1alpha1.ContainerRecreateRequestContainer{{Name: "main"}},
		Strategy:                &v1alpha1.ContainerRecreateRequestStrategy{OrderedRecreate: true, MinStartedSeconds: 10},
		TTLSecondsAfterFinished: ptr.To[int32](300),
	}}

	_, err := requests.Create(t.Context(), request, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(request.Spec.Strategy.FailurePolicy).To(Equal(v1alpha1.ContainerRecreateRequestFailurePolicyFail))

	stored := &appsv1beta1.ContainerRecreateRequest{}
	g.Expect(ours.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: request.Name}, stored)).To(Succeed())
	stored.Status = appsv1beta1.ContainerRecreateRequestStatus{
		Phase: appsv1beta1.ContainerRecreateRequestRecreating,
		ContainerRecreateStates: []appsv1beta1.ContainerRecreateRequestContainerRecreateState{
			{Name: "main", Phase: appsv1beta1.ContainerRecreateRequestSucceeded, IsKilled: true, ContainerID: "containerd://a", RestartCount: 2},
		},
	}
	g.Expect(ours.Status().Update(t.Context(), stored)).To(Succeed())
	request, err = requests.Get(t.Context(), request.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(request.Status).To(Equal(v1alpha1.ContainerRecreateRequestStatus{
		Phase:                   v1alpha1.ContainerRecreateRequestRecreating,
		ContainerRecreateStates: []v1alpha1.ContainerRecreateRequestContainerRecreateState{{Name: "main", Phase: v1alpha1.ContainerRecreateRequestSucceeded, IsKilled: true}},
	}))

	request.Labels = map[string]string{"team": "web"}
	_, err = requests.Update(t.Context(), request, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
}
