// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
)

// newNamespace makes a namespace for one spec, and tells what was in it if the
// spec fails.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			// A second attempt would forget what the first one failed with.
			AddReportEntry("Failure", CurrentSpecReport().Failure.Message)
			describe(ctx, namespace.Name)
		}
		Expect(client.IgnoreNotFound(api.Delete(ctx, namespace))).To(Succeed())
	})
	return namespace.Name
}

// describe prints what there is in a namespace.
func describe(ctx context.Context, namespace string) {
	sets := &appsv1beta1.StatefulSetList{}
	Expect(api.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	for i := range sets.Items {
		AddReportEntry("StatefulSet "+sets.Items[i].Name, fmt.Sprintf("%+v", sets.Items[i].Status))
	}
	pods := &corev1.PodList{}
	Expect(api.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
	for i := range pods.Items {
		pod := &pods.Items[i]
		AddReportEntry("Pod "+pod.Name, fmt.Sprintf("%v\n%+v", pod.Annotations, pod.Status))
	}
	for _, event := range eventsOf(ctx, namespace) {
		AddReportEntry("Event", event.Regarding.Kind+" "+event.Regarding.Name+" "+event.Reason+": "+event.Note)
	}
}

// create creates a set and waits until all its pods are available.
func create(ctx context.Context, b *builders.StatefulSetBuilder) *appsv1beta1.StatefulSet {
	GinkgoHelper()
	set := b.Build()
	Expect(api.Create(ctx, set)).To(Succeed())
	waitSettled(ctx, set)
	return set
}

// createUngated creates a set whose pods have no readiness gate: its template lists none,
// and they are made before the set is one that is updated in place.
func createUngated(ctx context.Context, b *builders.StatefulSetBuilder) *appsv1beta1.StatefulSet {
	GinkgoHelper()
	set := create(ctx, b.Ungated().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
	change(ctx, set, func(s *appsv1beta1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	})
	waitSettled(ctx, set)
	return set
}

// change changes the spec of a set.
func change(ctx context.Context, set *appsv1beta1.StatefulSet, mutate func(*appsv1beta1.StatefulSet)) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	before := set.DeepCopy()
	mutate(set)
	Expect(api.Patch(ctx, set, client.MergeFrom(before))).To(Succeed())
}

func setImage(ctx context.Context, set *appsv1beta1.StatefulSet, image string) {
	GinkgoHelper()
	change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image })
}

// isSettled reports whether every pod is at the present template and available.
func isSettled(g Gomega, set *appsv1beta1.StatefulSet) {
	status := set.Status
	g.Expect(status.ObservedGeneration).To(Equal(set.Generation))
	g.Expect(status.UpdatedAvailableReplicas).To(Equal(*set.Spec.Replicas), "blockers: %+v", status.Blockers)
	g.Expect(status.Replicas).To(Equal(*set.Spec.Replicas))
	g.Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
}

func waitSettled(ctx context.Context, set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	eventually(ctx, set, isSettled)
}

// eventually reads a set until it is as wanted.
func eventually(ctx context.Context, set *appsv1beta1.StatefulSet, wanted func(Gomega, *appsv1beta1.StatefulSet)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		wanted(g, set)
	}).Should(Succeed())
}

// versionsOf watches a set from now on: every version of it is received, also one that
// passes before the test polls.
func versionsOf(ctx context.Context, set *appsv1beta1.StatefulSet) <-chan watch.Event {
	GinkgoHelper()
	list := &appsv1beta1.StatefulSetList{}
	Expect(api.List(ctx, list, client.InNamespace(set.Namespace))).To(Succeed())
	// The watch outlives this node of the spec's context.
	events, err := api.Watch(context.WithoutCancel(ctx), &appsv1beta1.StatefulSetList{}, &client.ListOptions{
		Namespace: set.Namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	return events.ResultChan()
}

// versionsOfPod is versionsOf for a pod of a set.
func versionsOfPod(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int) <-chan watch.Event {
	GinkgoHelper()
	pod := getPod(ctx, set, ordinal)
	events, err := kube.CoreV1().Pods(pod.Namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(), ResourceVersion: pod.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	return events.ResultChan()
}

// waitVersion waits until a version is received that matches.
func waitVersion(ctx context.Context, versions <-chan watch.Event, wanted types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, versions).WithPolling(20 * time.Millisecond).Should(Receive(HaveField("Object", wanted)))
}

// pods returns the pods of a set, as a user sees them.
func pods(ctx context.Context, set *appsv1beta1.StatefulSet) []observe.Pod {
	GinkgoHelper()
	found, err := observe.Pods(ctx, kube, set.Namespace, "app="+set.Name)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// getPod returns one pod of a set.
func getPod(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, ordinal)}
	Expect(api.Get(ctx, key, pod)).To(Succeed())
	return pod
}

// expectInPlace checks that the pods are those from before, each restarted the
// given number of times.
func expectInPlace(before, after []observe.Pod, restarts int32) {
	GinkgoHelper()
	Expect(observe.Differences(before, after, restarts)).To(BeEmpty())
}

func eventsOf(ctx context.Context, namespace string) []eventsv1.Event {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// expectEvent waits for an event on an object of a kind whose note has a text.
func expectEvent(ctx context.Context, namespace, kind, reason, text string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) bool {
		for _, event := range eventsOf(ctx, namespace) {
			if event.Regarding.Kind == kind && event.Reason == reason && strings.Contains(event.Note, text) {
				return true
			}
		}
		return false
	}).Should(BeTrue(), "no event %s on a %s says %q", reason, kind, text)
}
