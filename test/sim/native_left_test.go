// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// optOutWith takes the label off in the middle of an update to b, with a template.
func optOutWith(revision string) func(*nativeWorkload) {
	return func(n *nativeWorkload) {
		toNative("b")(n)
		for n.world.failure == nil && n.countAt("app:b") == 0 {
			n.world.step()
		}
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

// A user who goes back and leaves in the middle of an update leaves the pods of a
// Deployment that went ahead as they are. With another template, Kubernetes recreates all.
func TestDeploymentsThatAreLeftInTheMiddle(t *testing.T) {
	for revision, ahead := range map[string]bool{"a": true, "both": false} {
		g := NewWithT(t)
		r := nativeRollout{kind: nativecontroller.Deployment, wish: plain, change: optOutWith(revision)}
		w, _ := r.begin(g)
		r.rest(g, w, revision)
		isAhead := w.native.countAt("app:b") > 0
		g.Expect(isAhead).To(Equal(ahead), w.story.String())
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
