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

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector().MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
}
