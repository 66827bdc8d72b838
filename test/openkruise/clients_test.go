// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package openkruise_test uses sets as tools do that are built with the Go types and the
// clients of OpenKruise.
package openkruise_test

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openkruise/kruise-api/client/clientset/versioned"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/apiserver"
)

const namespace = "default"

// server is the API server of all tests.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

// clients returns a client of OpenKruise and one of Insitu.
func clients(t *testing.T) (*versioned.Clientset, client.Client) {
	t.Helper()
	g := NewWithT(t)
	theirs, err := versioned.NewForConfig(server)
	g.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	ours, err := client.New(server, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	return theirs, ours
}

func objectMeta(t *testing.T, remove func(context.Context, string, metav1.DeleteOptions) error) metav1.ObjectMeta {
	t.Helper()
	const name = "web"
	t.Cleanup(func() {
		if err := remove(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})

	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

// scaler is what the clients of all kinds have for the subresource scale.
type scaler interface {
	GetScale(ctx context.Context, name string, options metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, options metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// expectScales scales a set to two pods.
func expectScales(t *testing.T, sets scaler, name string) {
	t.Helper()
	g := NewWithT(t)
	scale, err := sets.GetScale(t.Context(), name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	scale.Spec.Replicas = 2
	scale, err = sets.UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scale.Spec.Replicas).To(Equal(int32(2)))
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector().MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}
