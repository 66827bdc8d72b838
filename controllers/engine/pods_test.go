// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// lister lists pods in the order in which it has them, as a cache does that is a map.
type lister struct {
	client.Client
	pods []corev1.Pod
}

func (l lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PodList).Items = l.pods //nolint:forcetypeassert // nothing else is listed
	return nil
}

// Pods are observed in the same order each time, apart from strays and those of others.
func TestPodsAreObservedInOneOrder(t *testing.T) {
	g := NewWithT(t)
	pod := func(name, app string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}}}
	}
	core := &Core{Client: lister{pods: []corev1.Pod{pod("c", "web"), pod("z", "other"), pod("a", "web"), pod("foreign", "web"), pod("y", ""), pod("b", "web")}}}
	round := &Round{
		Owner:    workload.Owner{Object: &appsv1beta1.CloneSet{}},
		Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
	}
	names := func(pods []*corev1.Pod) []string {
		found := make([]string, 0, len(pods))
		for _, pod := range pods {
			found = append(found, pod.Name)
		}
		return found
	}

	g.Expect(core.ObservePods(t.Context(), round, func(pod *corev1.Pod) bool { return pod.Name != "foreign" })).To(Succeed())

	g.Expect(names(round.Pods)).To(Equal([]string{"a", "b", "c"}))
	g.Expect(names(round.Strays)).To(Equal([]string{"y", "z"}))
}
