// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// rollout is one that is told in words, and runs undisturbed to its end.
type rollout struct {
	name string
	// writes is how many writes to pods and claims it takes.
	writes   int
	settings func(*settings)
	change   func(*World)
}

func to(name string) func(*World) {
	return func(w *World) { w.ask(revisionNamed(name)) }
}

func listGate(w *World) {
	w.ask(revision{"gate", func(t *corev1.PodTemplateSpec) {
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	}})
}

func listNoGate(w *World) {
	w.ask(revision{"no gate", func(t *corev1.PodTemplateSpec) { t.Spec.ReadinessGates = nil }})
}

// rollouts are the reference rollouts: every kind of write that there is.
var rollouts = []rollout{
	{"in place, two at a time", 9, func(*settings) {}, to("b")},
	{"in place, one at a time, in order", 9, func(s *settings) { s.ordered, s.maxUnavailable = true, 1 }, to("b")},
	{"in place, with a grace period and slow endpoints", 9, func(s *settings) { s.gracePeriod, s.endpointDelay = 5*time.Second, 0 }, to("b")},
	{"in place, with minReadySeconds", 9, func(s *settings) { s.minReadySeconds = 5 }, to("b")},
	{"in place, two containers", 9, func(*settings) {}, to("both")},
	{"in place, one content under two names", 9, func(*settings) {}, func(w *World) { to("b")(w); w.settle(); to("b again")(w) }},
	{"in place, without a gate", 9, func(s *settings) { s.gated = false }, to("b")},
	{"in place, without a gate, with a grace period and slow endpoints", 9,
		func(s *settings) {
			s.gated, s.gracePeriod, s.minEndpointDelay, s.endpointDelay = false, 5*time.Second, 3, 3
		}, to("b")},
	{"in place, without a gate and a policy that drains", 3, func(s *settings) { s.gated, s.undrained = false, true }, to("b")},
	{"in place, with a gate that the template does not list", 9, func(s *settings) { s.unlisted = true }, to("b")},
	{"the gate listed, of pods that have it", 3, func(s *settings) { s.unlisted = true }, listGate},
	{"the gate listed no more", 3, func(*settings) {}, listNoGate},
	{"by recreation, for a gate that pods lack", 6, func(s *settings) { s.gated = false }, listGate},
	{"in place, on old kubelets", 9, func(s *settings) { s.oldKubelets = true }, to("b")},
	{"labels only", 3, func(*settings) {}, to("label")},
	{"by recreation, for a field", 9, func(*settings) {}, to("env")},
	{"by recreation, as asked for", 9, func(s *settings) { s.policy, s.claims = appsv1beta1.RecreatePodUpdateStrategyType, true }, to("b")},
	{"back to the revision before", 9, func(*settings) {}, func(w *World) { to("b")(w); w.settle(); to("a")(w) }},
	{"to a partition", 3, func(*settings) {}, func(w *World) {
		w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To[int32](2) })
		to("b")(w)
	}},
	{"with a scale-down", 5, func(s *settings) { s.claims = true }, func(w *World) {
		to("b")(w)
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](1) })
	}},
	{"with a scale-up", 15, func(s *settings) { s.claims = true }, func(w *World) {
		to("b")(w)
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](5) })
	}},
	{"taken over from another set", 12, func(*settings) {}, func(w *World) { to("b")(w); w.orphan() }},
	{"in place, each pod held by a hook and not ready", 12, hookedBy(hooks{inPlaceUpdate: true, marksUpdate: true}), to("b")},
	{"in place, each pod held by a finalizer", 15, hookedBy(hooks{inPlaceUpdate: true, finalizers: true}), to("b")},
	{"scale-down, each pod held by a hook", 4, hookedBy(hooks{preDelete: true, marksDelete: true}), func(w *World) {
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](1) })
	}},
	{"scale-up, each pod held by a hook", 6, hookedBy(hooks{preNormal: true}), func(w *World) {
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](5) })
	}},
	{"in place, one container after the other", 15, func(s *settings) { s.batches, s.slow = 3, "app" }, to("both")},
	{"in place, a restart for the environment", 9, func(s *settings) { s.reads = true }, to("level")},
	{"in place, for the environment and the image", 9, func(s *settings) { s.reads = true }, to("level b")},
	{"in place, respecting a budget", 9, func(s *settings) { s.respects, s.budgetLag = true, 2 }, to("b")},
}

// hookedBy gives the set hooks that answer after two seconds, and its template
// their marks.
func hookedBy(h hooks) func(*settings) {
	return func(s *settings) {
		s.hooked, s.marked, s.hooks, s.minHookDelay, s.hookDelay = true, true, h, 2, 2
	}
}

// begin brings the rollout to its last change, with a clean log.
func (r rollout) begin(g Gomega) *World {
	s := reference()
	r.settings(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	r.change(w)
	w.log = nil
	return w
}

// disturbing returns the fates of writes of which one has a fate of its own.
func disturbing(k int, special fate) func(write) fate {
	n := 0
	return func(write) fate {
		n++
		if n == k {
			return special
		}
		return succeeds
	}
}

// podWrites returns the writes to pods and claims, sorted: what would be repeated
// in vain shows here.
func podWrites(log []string) []string {
	writes := slices.DeleteFunc(slices.Clone(log), func(words string) bool {
		return strings.Contains(words, "ControllerRevision") || strings.Contains(words, pullerKind) || slices.ContainsFunc(namesOf(setKinds), func(kind string) bool { return strings.Contains(words, kind) })
	})
	return contentOnly(writes)
}

// isHooked reports whether the set of the rollout has hooks. If they answer
// earlier, what the answer leads to rides along with another write.
func (r rollout) isHooked() bool {
	s := reference()
	r.settings(&s)
	return s.hooked
}

// sendsAway reports whether pods go for their claims: what is asked of claims before
// depends on when that is known.
func (r rollout) sendsAway() bool {
	s := reference()
	r.settings(&s)
	return s.volumes.on && slices.Contains([]string{"offline", "remount"}, s.volumes.wish.class)
}

// isWithin reports whether no write was made more often than in others.
func isWithin(writes, others []string) bool {
	left := slices.Clone(others)
	for _, words := range writes {
		i := slices.Index(left, words)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

var everyFate = flag.Bool("every-fate", false, "try every fate of every write; otherwise, those that tell most")

// fatesOf returns what may become of the k-th write. A manager that is killed before a
// write leaves behind what one leaves that is killed after the write before it. The others
// are tried of every other write.
func fatesOf(k int) []fate {
	fates, every := []fate{killedAfter}, []fate{killedAfter, unanswered, strays, failed, conflicts, killedBefore}
	switch {
	case *everyFate:
		return every
	case testing.Short():
		return oneOf(k, every...)
	case k == 1:
		return append(fates, unanswered, strays, failed, killedBefore)
	case k%2 == 0:
		return append(fates, unanswered, conflicts)
	default:
		return append(fates, strays, failed)
	}
}

// fewFatesOf is fatesOf for rollouts that take long.
func fewFatesOf(k int) []fate {
	if *everyFate {
		return fatesOf(k)
	}
	return oneOf(k, killedAfter, unanswered)
}

// only returns the same fates for all writes, or one of them.
func only(fates ...fate) func(k int) []fate { return func(k int) []fate { return oneOf(k, fates...) } }

// For each reference rollout, the manager dies before and after every single
// write, and loses the answer to it: what it leaves is the same in the end, and
// no write to a pod was made twice.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(rollouts, cloneRollouts, poolRollouts, daemonRollouts, resizeRollouts, pullRollouts) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.crashEverywhere(NewWithT(t), fatesOf)
		})
	}
	for _, r := range volumeRollouts {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.crashEverywhere(NewWithT(t), fewFatesOf)
		})
	}
}

// crashEverywhere runs the rollout undisturbed, and then once for every write and every
// fate of it.
func (r rollout) crashEverywhere(g Gomega, fates func(k int) []fate) {
	w := r.begin(g)
	before := w.uids()
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	undisturbed, writes := w.outcome(before), w.log
	g.Expect(podWrites(writes)).To(HaveLen(r.writes), w.story.String())
	for k := 1; k <= len(writes); k++ {
		if isLeftOut(k, 3) {
			continue
		}
		for _, special := range fates(k) {
			words := fmt.Sprintf("%s: write %d of %d, %s", special, k, len(writes), writes[k-1])
			w := r.begin(g)
			w.fate = disturbing(k, special)
			before := w.uids()
			w.settle()
			g.Expect(w.failure).NotTo(HaveOccurred(), "%s\n%s", words, w.story)
			g.Expect(w.outcome(before)).To(Equal(undisturbed), "%s\n%s", words, w.story)
			switch {
			case special == strays, r.sendsAway():
			case r.isHooked():
				g.Expect(isWithin(podWrites(w.log), podWrites(writes))).To(BeTrue(), "%s\n%s", words, w.story)
			default:
				g.Expect(podWrites(w.log)).To(Equal(podWrites(writes)), "%s\n%s", words, w.story)
			}
		}
	}
}

// A manager that never survives a write gets there as well.
func TestCrashAfterEveryWriteInARow(t *testing.T) {
	for k, r := range slices.Concat(rollouts, cloneRollouts, resizeRollouts, volumeRollouts, widerRollouts, poolRollouts, daemonRollouts, pullRollouts) {
		if isLeftOut(k, 3) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			g := NewWithT(t)
			w := r.begin(g)
			before := w.uids()
			w.settle()
			undisturbed := w.outcome(before)

			w = r.begin(g)
			before = w.uids()
			lives := 200
			w.fate = func(write) fate {
				lives--
				if lives > 0 {
					return killedAfter
				}
				return succeeds
			}
			w.settle()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			g.Expect(w.outcome(before)).To(Equal(undisturbed), w.story.String())
		})
	}
}
