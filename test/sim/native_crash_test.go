// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// nativeRollout is a rollout of a workload of Kubernetes that runs undisturbed to its
// end.
type nativeRollout struct {
	name string
	kind nativecontroller.Kind
	// kept is how many of the pods stay.
	kept int
	wish func(*wish)
	// change is what the user does, after what was before has come to rest.
	change func(*nativeWorkload)
	// history is what the ReplicaSets of a Deployment are then.
	history string
}

// toNative asks for one revision after the other.
func toNative(names ...string) func(*nativeWorkload) {
	return func(n *nativeWorkload) {
		for i, name := range names {
			if i > 0 {
				n.world.settle()
			}
			n.to(nativeRevisionNamed(name))
		}
	}
}

func plain(*wish) {}

var nativeRollouts = []nativeRollout{
	{"Deployment, in place", nativecontroller.Deployment, 3, plain, toNative("b"), "1 app:a, 3 app:b with 3"},
	{"Deployment, one pod", nativecontroller.Deployment, 1, func(w *wish) { w.replicas, w.maxUnavailable = 1, 0 }, toNative("b"), "1 app:a, 3 app:b with 1"},
	{"Deployment, one pod, there and back", nativecontroller.Deployment, 1, func(w *wish) { w.replicas, w.maxUnavailable = 1, 0 }, toNative("b", "a"), "3 app:b, 5 app:a with 1"},
	{"Deployment, without a pod more", nativecontroller.Deployment, 3, func(w *wish) { w.surge = 0 }, toNative("b"), "1 app:a, 2 app:b with 3"},
	{"Deployment, there and back", nativecontroller.Deployment, 3, plain, toNative("b", "a"), "3 app:b, 5 app:a with 3"},
	{"Deployment, three revisions", nativecontroller.Deployment, 3, plain, toNative("b", "both"), "1 app:a, 3 app:b, 5 app:c with 3"},
	{"Deployment, without history", nativecontroller.Deployment, 3, func(w *wish) { w.history = 0 }, toNative("b"), "3 app:b with 3"},
	{"Deployment, a label", nativecontroller.Deployment, 3, plain, toNative("label"), "1 app:a, 3 app:a with 3"},
	{"Deployment, restarted", nativecontroller.Deployment, 3, plain, toNative("restart"), "1 app:a, 3 app:a with 3"},
	{"Deployment, by recreation", nativecontroller.Deployment, 0, plain, toNative("env"), "1 app:a, 2 app:b with 3"},
	{"Deployment, scaled meanwhile", nativecontroller.Deployment, 3, plain, func(n *nativeWorkload) {
		toNative("b")(n)
		n.wish.replicas = 5
		n.ask(false)
	}, "1 app:a, 3 app:b with 5"},
	{"Deployment, one pod, scaled meanwhile", nativecontroller.Deployment, 1, func(w *wish) { w.replicas, w.maxUnavailable = 1, 0 }, func(n *nativeWorkload) {
		toNative("b")(n)
		for range 3 {
			n.world.step()
		}
		n.wish.replicas = 4
		n.ask(false)
	}, "1 app:a, 3 app:b with 4"},
	{"StatefulSet, in place", nativecontroller.StatefulSet, 3, plain, toNative("b"), ""},
	{"StatefulSet, in order", nativecontroller.StatefulSet, 3, func(w *wish) { w.ordered, w.maxUnavailable = true, 1 }, toNative("b"), ""},
	{"StatefulSet, with a strategy by default", nativecontroller.StatefulSet, 3, func(w *wish) { w.bare = true }, toNative("b"), ""},
	{"StatefulSet, there and back", nativecontroller.StatefulSet, 3, plain, toNative("b", "a"), ""},
	{"StatefulSet, restarted", nativecontroller.StatefulSet, 3, plain, toNative("restart"), ""},
	{"StatefulSet, a label", nativecontroller.StatefulSet, 3, plain, toNative("label"), ""},
	{"StatefulSet, by recreation", nativecontroller.StatefulSet, 0, plain, toNative("env"), ""},
	{"DaemonSet, in place", nativecontroller.DaemonSet, 3, plain, toNative("b"), ""},
	{"DaemonSet, there and back", nativecontroller.DaemonSet, 3, plain, toNative("b", "a"), ""},
	{"DaemonSet, a label", nativecontroller.DaemonSet, 3, plain, toNative("label"), ""},
	{"DaemonSet, by recreation", nativecontroller.DaemonSet, 0, plain, toNative("env"), ""},
}

// begin brings the rollout to its change, and makes that, with a clean log.
func (r nativeRollout) begin(g Gomega) (*World, map[types.UID]bool) {
	return r.beginWith(g, reference())
}

func (r nativeRollout) beginWith(g Gomega, s settings) (*World, map[types.UID]bool) {
	first := firstWish()
	r.wish(&first)
	w, err := newNativeWorld(FromBytes(nil), s, r.kind, first)
	g.Expect(err).NotTo(HaveOccurred())
	w.calm = true
	w.settle()
	w.rules.checkRest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	before := map[types.UID]bool{}
	for _, pod := range all[*corev1.Pod](w.server) {
		before[pod.UID] = true
	}
	r.change(w.native)
	w.log = nil
	return w, before
}

// outcome tells what there is, without names that differ from run to run.
func (r nativeRollout) outcome(w *World, before map[types.UID]bool) string {
	kept, restarts := 0, int32(0)
	for _, pod := range w.native.pods() {
		if !before[pod.UID] {
			continue // when a new one is changed, it may run or not
		}
		kept++
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
		}
	}
	var history []string
	if r.kind == nativecontroller.Deployment {
		for _, rs := range w.native.replicaSets() {
			words := fmt.Sprintf("%s %s", rs.Annotations[rsRevision], rs.Spec.Template.Spec.Containers[0].Image)
			if n := ptr.Deref(rs.Spec.Replicas, 1); n > 0 {
				words += fmt.Sprintf(" with %d", n)
			}
			history = append(history, words)
		}
	}
	slices.Sort(history)
	return fmt.Sprintf("%d kept, %d restarts; %s", kept, restarts, strings.Join(history, ", "))
}

// rest brings a world to rest, and asserts what is to be so then.
func (r nativeRollout) rest(g Gomega, w *World, words string) {
	w.settle()
	w.rules.checkRest()
	g.Expect(w.failure).NotTo(HaveOccurred(), "%s\n%s", words, w.story)
}

// nativePullRollouts are those whose images are pulled before.
var nativePullRollouts = []nativeRollout{
	{"Deployment, pulled before", nativecontroller.Deployment, 3, plain, toNative("b"), "1 app:a, 3 app:b with 3"},
	{"Deployment, pulled before, without a pod more", nativecontroller.Deployment, 3, func(w *wish) { w.surge = 0 }, toNative("b"), "1 app:a, 2 app:b with 3"},
	{"StatefulSet, pulled before", nativecontroller.StatefulSet, 3, plain, toNative("b"), ""},
	{"StatefulSet, overtaken while it is pulled", nativecontroller.StatefulSet, 3, plain, func(n *nativeWorkload) {
		n.to(nativeRevisionNamed("missing"))
		n.world.settleOr(20 * time.Second)
		n.to(nativeRevisionNamed("b"))
	}, ""},
	{"DaemonSet, pulled before", nativecontroller.DaemonSet, 3, plain, toNative("b"), ""},
}

// For each rollout, the manager dies before and after every single write, and loses
// the answer to it: what it leaves is the same in the end.
func TestNativeCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	pulled := reference()
	ahead(&pulled)
	for s, rollouts := range map[*settings][]nativeRollout{ptr.To(reference()): nativeRollouts, &pulled: nativePullRollouts} {
		for _, r := range rollouts {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				r.crashAtEveryWrite(t, *s)
			})
		}
	}
}

func (r nativeRollout) crashAtEveryWrite(t *testing.T, s settings) {
	t.Helper()
	g := NewWithT(t)
	w, before := r.beginWith(g, s)
	r.rest(g, w, "undisturbed")
	undisturbed, writes := r.outcome(w, before), w.log
	g.Expect(undisturbed).To(HavePrefix(fmt.Sprintf("%d kept", r.kept)), w.story.String())
	g.Expect(undisturbed).To(HaveSuffix("; "+r.history), w.story.String())
	for k := 1; k <= len(writes); k++ {
		if isLeftOut(k, 3) {
			continue
		}
		for _, special := range fatesOf(k) {
			words := fmt.Sprintf("%s: write %d of %d, %s", special, k, len(writes), writes[k-1])
			w, before := r.beginWith(g, s)
			w.fate = disturbing(k, special)
			r.rest(g, w, words)
			g.Expect(r.outcome(w, before)).To(Equal(undisturbed), "%s\n%s", words, w.story)
		}
	}
}

// A manager that never survives a write gets there as well.
func TestNativeCrashAfterEveryWriteInARow(t *testing.T) {
	for k, r := range nativeRollouts {
		if isLeftOut(k, 3) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			g := NewWithT(t)
			w, before := r.begin(g)
			r.rest(g, w, "undisturbed")
			undisturbed := r.outcome(w, before)

			w, before = r.begin(g)
			lives := 200
			w.fate = func(write) fate {
				lives--
				if lives > 0 {
					return killedAfter
				}
				return succeeds
			}
			r.rest(g, w, "dies after every write")
			g.Expect(r.outcome(w, before)).To(Equal(undisturbed), w.story.String())
		})
	}
}
