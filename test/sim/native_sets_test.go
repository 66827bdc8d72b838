// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

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

// Of a rollout that Kubernetes has begun, one pod is at a revision from which it cannot be
// updated in place. It is recreated once, and comes back at the new revision; the others stay.
func TestStatefulSetRecreatesNoOtherPod(t *testing.T) {
	g := NewWithT(t)
	var first map[string]types.UID
	one := func(w *wish) { w.ordered, w.maxUnavailable = true, 1 }
	r := nativeRollout{kind: nativecontroller.StatefulSet, wish: one, change: func(n *nativeWorkload) {
		before := n.podUIDs()
		toNative("env")(n)
		for n.world.failure == nil && maps.Equal(before, n.podUIDs()) {
			n.world.step()
		}
		for n.world.failure == nil && len(n.podUIDs()) < len(before) {
			n.world.step()
		}
		first = n.podUIDs()
		toNative("b")(n)
	}}
	w, _ := r.begin(g)

	made := map[string]sets.Set[types.UID]{}
	for range 600 {
		for name, uid := range w.native.podUIDs() {
			made[name] = sets.New(uid).Union(made[name])
		}
		w.step()
	}
	r.rest(g, w, "the next update")

	recreated := 0
	for name, uids := range made {
		switch len(uids) {
		case 1:
			g.Expect(w.native.podUIDs()).To(HaveKeyWithValue(name, first[name]))
		default:
			recreated++
			g.Expect(uids).To(HaveLen(2), "%s\n%s", name, w.story)
		}
	}
	g.Expect(recreated).To(Equal(1), w.story.String())
}

// A pod that was updated, and is deleted while others are still to be, has written its volume:
// it comes back at the new revision, which the law sees to.
func TestStatefulSetPodsComeBackAtTheNewRevision(t *testing.T) {
	for name, of := range map[string]func(*wish){"in order": inOrder, "in parallel": plain, "without rollingUpdate": bareStrategy} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			const last = setName + "-2"
			r := nativeRollout{kind: nativecontroller.StatefulSet, wish: of, change: func(n *nativeWorkload) {
				first, _ := get[*corev1.Pod](n.world.server, last)
				toNative("b")(n)
				g.Expect(isHeld(n.object())).To(BeTrue())
				for n.world.failure == nil {
					if pod, _ := get[*corev1.Pod](n.world.server, last); revisionOf(pod) != revisionOf(first) {
						break
					}
					n.world.step()
				}
				_ = n.world.server.delete(objectKey{"Pod", last}, nil) // it is there
			}}
			w, before := r.begin(g)
			r.rest(g, w, "with the pod that was deleted")
			g.Expect(r.outcome(w, before)).To(HavePrefix("2 kept"), w.story.String())
		})
	}
}

// podUIDs returns the pods that are not about to go, by their names.
func (n *nativeWorkload) podUIDs() map[string]types.UID {
	found := map[string]types.UID{}
	for _, pod := range n.allPodsOf(n.object()) {
		if pod.DeletionTimestamp == nil {
			found[pod.Name] = pod.UID
		}
	}
	return found
}
