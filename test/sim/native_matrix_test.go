// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/inplace"
)

// nativeSituation is a state in which a native workload is overtaken.
type nativeSituation struct {
	name string
	// to is the revision on its way.
	to string
	// at tells whether a pod is where it is waited for.
	at func(*World, *corev1.Pod) bool
	// broken: the revision on its way never becomes ready.
	broken bool
	// only is the one kind that comes into it; empty for all.
	only nativecontroller.Kind
}

var nativeSituations = []nativeSituation{
	{name: "held, and nothing has begun", to: "b", at: func(w *World, _ *corev1.Pod) bool { return isHeld(w.native.object()) }},
	{name: "a pod is out of service", to: "b", at: func(_ *World, pod *corev1.Pod) bool { return isKeptOut(pod) && !isAtImage(pod, bImage) }},
	{name: "a pod is changed, and its container runs on", to: "b", at: func(_ *World, pod *corev1.Pod) bool {
		return isAtImage(pod, bImage) && pod.Status.ObservedGeneration < pod.Generation
	}},
	{name: "a pod is being restarted", to: "b", at: func(w *World, pod *corev1.Pod) bool {
		return isAtImage(pod, bImage) && pod.Status.ObservedGeneration == pod.Generation && !inplace.Observe(pod, w.clock.Now()).Complete
	}},
	{name: "a pod is done, others are not", to: "b", at: func(w *World, pod *corev1.Pod) bool {
		return isAtImage(pod, bImage) && isHeld(w.native.object()) && conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)
	}},
	{name: "the ReplicaSet has the new template", to: "b", only: nativecontroller.Deployment, at: func(w *World, _ *corev1.Pod) bool {
		return slices.ContainsFunc(w.native.replicaSets(), func(rs *appsv1.ReplicaSet) bool { return rs.Annotations[native.PreviousRevisionAnnotation] != "" })
	}},
	{name: "its image cannot be pulled", to: "missing", broken: true, at: func(_ *World, pod *corev1.Pod) bool { return isAtImage(pod, missingImage) && inplace.IsBroken(pod) }},
	{name: "its container keeps crashing", to: "crash", broken: true, at: func(_ *World, pod *corev1.Pod) bool { return isAtImage(pod, crashImage) && inplace.IsBroken(pod) }},
	{name: "Kubernetes recreates the pods", to: "env", at: func(w *World, _ *corev1.Pod) bool {
		return !isHeld(w.native.object()) && slices.ContainsFunc(w.native.pods(), func(pod *corev1.Pod) bool { return !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) })
	}},
}

func isAtImage(pod *corev1.Pod, image string) bool {
	return pod.Spec.Containers[0].Image == image
}

// nativeOvertaking is what happens then. It returns what is to be done later so that
// the workload can come to rest; nil for nothing.
type nativeOvertaking struct {
	name string
	do   func(n *nativeWorkload, pod *corev1.Pod) (later func())
	// asks: it asks for a revision that becomes ready.
	asks bool
}

func asking(name string) func(*nativeWorkload, *corev1.Pod) func() {
	return func(n *nativeWorkload, _ *corev1.Pod) func() {
		n.to(nativeRevisionNamed(name))
		return nil
	}
}

var nativeOvertakings = []nativeOvertaking{
	{"next revision", asking("both"), true},
	{"previous revision", asking("a"), true},
	{"labels only", asking("label"), true},
	{"restart", asking("restart"), true},
	{"one that recreates", asking("env"), true},
	{"applied again", func(n *nativeWorkload, _ *corev1.Pod) func() { n.apply(); return nil }, false},
	{"scaled", func(n *nativeWorkload, _ *corev1.Pod) func() {
		if n.kind != nativecontroller.DaemonSet {
			n.wish.replicas = 1
			n.ask(false)
			return func() { n.wish.replicas = 4; n.ask(false) }
		}
		return nil
	}, false},
	{"pod deleted", func(n *nativeWorkload, pod *corev1.Pod) func() {
		_ = n.world.server.delete(objectKey{"Pod", pod.Name}, nil) // it may be gone by itself
		return nil
	}, false},
	{"node gone", func(n *nativeWorkload, pod *corev1.Pod) func() {
		node := n.world.node(pod)
		if node == nil {
			node = n.world.nodes[0] // the pod has none yet
		}
		node.deadSince = n.world.clock.Now()
		return n.world.bringBackNode
	}, false},
	{"label taken off", func(n *nativeWorkload, _ *corev1.Pod) func() {
		n.wish.policy = ""
		n.ask(false)
		return nil
	}, false},
	{"released by hand", func(n *nativeWorkload, _ *corev1.Pod) func() { n.askForRelease(); return nil }, false},
	{"operator killed", func(n *nativeWorkload, _ *corev1.Pod) func() {
		n.world.manager.client.dead, n.world.manager.startsAt = true, n.world.clock.Now().Add(20*time.Second)
		return nil
	}, false},
}

// reach returns a world in which the workload is in the situation, and the pod that
// is.
func (s nativeSituation) reach(g Gomega, kind nativecontroller.Kind) (*World, *corev1.Pod) {
	settings, first := reference(), firstWish()
	settings.gracePeriod, settings.endpointDelay, settings.minEndpointDelay = 3*time.Second, 2, 2
	first.maxUnavailable = 1
	w, err := newNativeWorld(FromBytes(nil), settings, kind, first)
	g.Expect(err).NotTo(HaveOccurred())
	w.calm = true
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	w.native.to(nativeRevisionNamed(s.to))
	for range 200 {
		pods := all[*corev1.Pod](w.server)
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			if s.at(w, pods[name]) {
				return w, pods[name]
			}
		}
		w.step()
	}
	g.Expect(s.name).To(BeEmpty(), "no pod came into this state\n%s", w.story)
	return nil, nil
}

// Every native workload can be overtaken in every state, and ends as its user wants
// it.
func TestNativeAnyStateAnyRevision(t *testing.T) {
	for _, kind := range []nativecontroller.Kind{nativecontroller.Deployment, nativecontroller.StatefulSet, nativecontroller.DaemonSet} {
		for _, s := range nativeSituations {
			if s.only != "" && s.only != kind {
				continue
			}
			for _, o := range nativeOvertakings {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, s.name, o.name), func(t *testing.T) {
					g := NewWithT(t)
					w, pod := s.reach(g, kind)
					w.say("now: %s, while %s: %s", o.name, pod.Name, s.name)
					later := o.do(w.native, pod)
					w.settleOr(150 * time.Second)
					if later != nil {
						later()
					}
					if s.broken && !o.asks {
						w.settleOr(60 * time.Second)
						w.native.to(nativeRevisionNamed("b"))
					}
					w.settle()
					w.rules.checkRest()
					g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
					g.Expect(w.native.object().GetLabels()).NotTo(HaveKey(native.HeldLabel))
				})
			}
		}
	}
}
