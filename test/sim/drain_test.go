// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// No Service selects the pod, so no EndpointSlice tells that it still serves: its
// clients look at the pod itself. Only the kubelet knows when it is out of service,
// and says nothing for a while after it was marked.
func TestDrainWithoutService(t *testing.T) {
	for _, s := range []func(*settings){
		func(*settings) {},
		func(s *settings) { s.gracePeriod = 3 * time.Second },
		func(s *settings) { hookedBy(hooks{inPlaceUpdate: true, marksUpdate: true})(s); s.gated = false },
	} {
		g := NewWithT(t)
		settings := reference()
		settings.replicas, settings.maxUnavailable, settings.unserved = 1, 1, true
		s(&settings)
		w, err := newScenario(settings)
		g.Expect(err).NotTo(HaveOccurred())
		to("b")(w)
		silenceAtFirstMark(w, 10*time.Second)
		for range 8 {
			w.step()
			pod, _ := get[*corev1.Pod](w.server, setName+"-0")
			g.Expect(images(pod)["app"]).To(Equal("app:a"), "it is changed while the kubelet says that it is ready\n%s", w.story)
		}
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
}

// silenceAtFirstMark lets time go by until a pod is marked not ready, and the kubelets say
// nothing from then on for a while.
func silenceAtFirstMark(w *World, silence time.Duration) {
	silent := false
	w.fate = func(written write) fate {
		if !silent && written.isAbout("patch Pod/status") {
			silent = true
			for _, node := range w.nodes {
				node.silentUntil = w.clock.Now().Add(silence)
			}
		}
		return succeeds
	}
	for !silent {
		w.step()
	}
}

// A pod is marked, as its budget allows, and its kubelet says nothing yet. That another pod
// fails meanwhile takes the permission back for none that is on its way out.
func TestRecreationOfAPodWhoseKubeletIsSilent(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	s.respects = true
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	to("b")(w)
	silenceAtFirstMark(w, 30*time.Second)
	mutate(w.server, setName+"-0", func(pod *corev1.Pod) { setPodCondition(pod, corev1.PodReady, false, w.clock.Now()) })
	w.step()
	to("env")(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(w.story.String()).To(ContainSubstring("manager: delete Pod sample-2"))
}
