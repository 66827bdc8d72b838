// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// optOutWith takes the label off in the middle of an update to b, with a template.
func optOutWith(revision string) func(*nativeWorkload) {
	return func(n *nativeWorkload) {
		beginUpdate(n)
		n.wish.policy, n.wish.revision = "", nativeRevisionNamed(revision)
		n.ask(true)
	}
}

// countAt returns how many pods have an image.
func (n *nativeWorkload) countAt(image string) int {
	count := 0
	for _, pod := range n.pods() {
		if pod.Spec.Containers[0].Image == image {
			count++
		}
	}
	return count
}

// askBack sets the template back to that before.
func (n *nativeWorkload) askBack(whole bool) {
	n.wish.revision = nativeRevisionNamed("a")
	n.ask(whole)
}

// waysToLeave are the ways in which pods of a Deployment go ahead to b, and its user goes
// back to a, and leaves.
var waysToLeave = map[string]func(*nativeWorkload){
	"back and out in one write": optOutWith("a"),
	"another template":          optOutWith("both"),
	"back, then out": func(n *nativeWorkload) {
		beginUpdate(n)
		n.askBack(false)
		n.wish.policy = ""
		n.ask(true)
	},
	"out, then back at once": func(n *nativeWorkload) {
		beginUpdate(n)
		n.wish.policy = ""
		n.ask(true)
		n.askBack(false)
	},
	"out, then back while Kubernetes rolls": func(n *nativeWorkload) {
		beginUpdate(n)
		n.wish.policy = ""
		n.ask(true)
		for range 3 {
			n.world.step()
		}
		n.askBack(false)
	},
	"back, then released": func(n *nativeWorkload) {
		beginUpdate(n)
		n.askBack(false)
		n.askForRelease()
	},
	"out and paused, then back, then on": func(n *nativeWorkload) {
		beginUpdate(n)
		n.wish.policy, n.wish.paused = "", true
		n.ask(true)
		n.askBack(false)
		for range 40 {
			n.world.step()
		}
		n.wish.paused = false
		n.ask(false)
	},
	"out while the manager is down, then back": func(n *nativeWorkload) {
		beginUpdate(n)
		n.world.manager.client.dead, n.world.manager.startsAt = true, n.world.clock.Now().Add(20*time.Second)
		n.wish.policy = ""
		n.ask(true)
		n.askBack(false)
	},
}

// beginUpdate asks for b, and waits until a pod has it.
func beginUpdate(n *nativeWorkload) {
	toNative("b")(n)
	for n.world.failure == nil && n.countAt("app:b") == 0 {
		n.world.step()
	}
}

// A user who goes back and leaves in the middle of an update of a Deployment gets the
// pods back that went ahead: Kubernetes takes them for updated. With another template, it
// recreates all. So it is when Kubernetes sees late, and wherever the manager dies.
func TestDeploymentsThatAreLeftInTheMiddle(t *testing.T) {
	for name, change := range waysToLeave {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := nativeRollout{kind: nativecontroller.Deployment, wish: plain, change: change}
			for _, kind := range append([]string{""}, lateKinds...) {
				s := reference()
				if kind != "" {
					s.late = late{on: true, by: map[string]int{kind: lateBy}}
				}
				w, _ := r.beginWith(g, s)
				r.rest(g, w, kind)
				g.Expect(w.native.countAt("app:b")).To(BeZero(), w.story.String())
			}
			w, _ := r.begin(g)
			r.rest(g, w, "undisturbed")
			for k := 1; k <= len(w.log); k++ {
				for _, special := range fatesOf(k) {
					w, _ := r.begin(g)
					w.fate = disturbing(k, special)
					r.rest(g, w, fmt.Sprintf("%s: write %d", special, k))
				}
			}
		})
	}
}

// A pod that says that it is at the template's revision is to be so, also when the user
// has left.
func TestDeploymentsThatAreLeftUpdated(t *testing.T) {
	g := NewWithT(t)
	r := nativeRollout{kind: nativecontroller.Deployment, wish: plain, change: func(n *nativeWorkload) {
		toNative("b")(n)
		n.world.settle()
		n.wish.policy = ""
		n.ask(true)
	}}
	w, _ := r.begin(g)
	r.rest(g, w, "left")
	pod := w.native.pods()[0]
	mutate(w.server, pod.Name, func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "app:c" })
	g.Expect(w.rules.whatIsMissing()).To(ContainSubstring(pod.Name+" has images"), w.story.String())
}
