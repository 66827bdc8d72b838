// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestNodeChanged(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a heartbeat":          {func(n *corev1.Node) { n.ResourceVersion = "2" }, false},
		"a taint":              {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }, false},
		"not ready":            {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"a label":              {func(n *corev1.Node) { n.Labels["disk"] = "ssd" }, true},
		"being deleted":        {func(n *corev1.Node) { n.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }, true},
		"another of that name": {func(n *corev1.Node) { n.UID = "other" }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := node("a"), node("a")
			test.change(after)
			NewWithT(t).Expect(nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.want))
		})
	}
}

func TestPodMoved(t *testing.T) {
	pod := func(on string, phase corev1.PodPhase, labels ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Spec: corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{Phase: phase}}
		for _, label := range labels {
			p.Labels[label] = "x"
		}
		return p
	}
	tests := map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"scheduled":     {pod("", corev1.PodPending), pod("a", corev1.PodPending), true},
		"started":       {pod("a", corev1.PodPending), pod("a", corev1.PodRunning), false},
		"ended":         {pod("a", corev1.PodRunning), pod("a", corev1.PodFailed), true},
		"another label": {pod("a", corev1.PodRunning), pod("a", corev1.PodRunning, "app"), true},
		"made again":    {pod("a", corev1.PodRunning), pod("b", corev1.PodRunning), true},
		"one that pulls": {
			pod("", corev1.PodPending, appsv1beta1.PullerLabel), pod("a", corev1.PodPending, appsv1beta1.PullerLabel), false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podMoved().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})).To(Equal(test.want))
		})
	}
}

// Where the definitions are older than the manager, all other kinds are served.
func TestServed(t *testing.T) {
	g := NewWithT(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	g.Expect(Served(mapper)).To(BeEmpty())
	mapper.Add(appsv1beta1.ImagePullJobKind, meta.RESTScopeNamespace)
	g.Expect(Served(mapper)).To(BeEmpty())
	mapper.Add(appsv1beta1.ImageListPullJobKind, meta.RESTScopeNamespace)
	g.Expect(Served(mapper)).To(HaveLen(2))
}

func TestWhichJobsHearOfNodesAndPods(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0"}, Spec: corev1.PodSpec{NodeName: "a"}}
	w := newWorld(t, node("a"), pod)
	w.addJob("all", `{image: "web:2", parallelism: 0}`)
	w.addJob("pods", `{image: "web:2", parallelism: 0, podSelector: {}}`)
	w.addJob("over", `{image: "web:2", podSelector: {matchLabels: {app: none}}}`)
	w.run(1)

	w.Expect(w.jobs.incomplete(t.Context(), node("a"))).To(ConsistOf(requestFor("all"), requestFor("pods")))
	w.Expect(w.jobs.selectingPods(t.Context(), pod)).To(ConsistOf(requestFor("pods")))
	pod.Namespace = "bank"
	w.Expect(w.jobs.selectingPods(t.Context(), pod)).To(BeEmpty())
}

// A manager forgets jobs that are complete or gone, and takes no job for another of its name.
func TestMemories(t *testing.T) {
	w := newWorld(t, nodes("a")...)
	w.slow["a"] = true
	w.addJob("gone", `{image: "web:2"}`)
	w.addJob("over", `{image: "web:2", selector: {names: [z]}}`)
	w.run(1)
	w.Expect(w.jobs.known.ofJob).To(HaveLen(1))
	first := w.job("gone")
	w.Expect(w.client.Delete(t.Context(), first)).To(Succeed())
	w.addJob("gone", `{image: "web:2"}`)
	w.run(2)
	name := client.ObjectKeyFromObject(first)
	w.Expect(w.jobs.known.ofJob[name].job).To(Equal(w.job("gone").UID))
	w.Expect(w.client.Delete(t.Context(), w.job("gone"))).To(Succeed())
	w.clock.Step(time.Second)
	w.look("gone")
	w.Expect(w.jobs.known.ofJob).To(BeEmpty())
}
