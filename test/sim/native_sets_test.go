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

// notOptedIn is a rollout that Kubernetes makes alone.
func notOptedIn(replicas int32, of func(*wish), change func(*nativeWorkload)) nativeRollout {
	return nativeRollout{kind: nativecontroller.StatefulSet, change: change, wish: func(w *wish) {
		w.policy, w.replicas = "", replicas
		of(w)
	}}
}

func ungated() settings {
	s := reference()
	s.gated, s.readyTime = false, 10*time.Second
	return s
}

func bareStrategy(w *wish) { w.bare = true }

// whileFirstIsOut goes to another revision while the first pod does not serve.
func whileFirstIsOut(n *nativeWorkload) {
	pod, _ := get[*corev1.Pod](n.world.server, setName+"-0")
	n.world.worker(pod).crash("app")
	n.world.step()
	toNative("b")(n)
}

// Of a strategy without rollingUpdate, Kubernetes makes a pod at the revision before if
// its ordinal is less than the number of pods at that, and deletes it at once. It counts
// that deletion, but not yet the pod: with one other pod, none is left, and it is made at
// the new revision.
func TestStatefulSetCountsWhatItRolls(t *testing.T) {
	g := NewWithT(t)
	w, _ := notOptedIn(2, bareStrategy, whileFirstIsOut).beginWith(g, ungated())
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// stuckRollouts are those that Kubernetes never ends by itself.
var stuckRollouts = []struct {
	name     string
	replicas int32
	of       func(*wish)
	change   func(*nativeWorkload)
}{
	{"in order", 3, inOrder, afterBroken},
	{"in order, without rollingUpdate", 3, func(w *wish) { w.ordered, w.bare = true, true }, afterBroken},
	{"without rollingUpdate", 4, bareStrategy, whileFirstIsOut},
}

func inOrder(w *wish) { w.ordered = true }

// afterBroken goes to another revision after one whose first pod is broken.
func afterBroken(n *nativeWorkload) { toNative("crash", "env")(n) }

// What Kubernetes leaves to its users is what they have to do, and it is enough.
func TestStatefulSetsThatUsersUnblock(t *testing.T) {
	for _, r := range stuckRollouts {
		for _, helped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", r.name, helped), func(t *testing.T) {
				g := NewWithT(t)
				w, _ := notOptedIn(r.replicas, r.of, r.change).beginWith(g, ungated())
				if helped {
					w.native.unblock()
				}
				w.settleOr(patient)
				missing := w.rules.whatIsMissing()
				ended := missing == ""
				g.Expect(ended).To(Equal(helped), "%s\n%s", missing, w.story)
			})
		}
	}
}
