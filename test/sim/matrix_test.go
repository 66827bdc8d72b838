// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

var update = flag.Bool("update", false, "write the generated documents")

// matrixFile is the generated document.
const matrixFile = "../../docs/any-state-any-revision.md"

// situation is a state in which a pod is overtaken.
type situation struct {
	name, meaning string
	// to is the revision on its way, state the state waited for.
	to    string
	state inplace.State
	// hold keeps the pod in a state that passes at once.
	hold func(*World)
	// at, if set, tells whether a pod is where it is waited for, instead of state.
	at func(*World, *corev1.Pod) bool
	// settings, if set, changes what is special about the set.
	settings func(*settings)
	// broken: the revision on its way never becomes ready.
	broken bool
}

var situations = []situation{
	{name: "Settled", meaning: "the pod is done, others are not", to: "b", state: inplace.Settled},
	{name: "Waiting", meaning: "the pod has not had its turn", to: "b", state: inplace.Waiting},
	{name: "HookHeld", meaning: "a hook holds the pod before its update", to: "b", state: inplace.HookHeld, settings: hold},
	{name: "Draining", meaning: "marked not ready, an EndpointSlice still lists it", to: "b", state: inplace.Draining},
	{name: "Grace", meaning: "out of service, its grace period runs", to: "b", state: inplace.Grace},
	{name: "Patching", meaning: "may be changed now, the server does not answer", to: "b", state: inplace.Patching, hold: holdPatches},
	{name: "Restarting", meaning: "changed, its container is being stopped", to: "b", state: inplace.Restarting},
	{name: "Verifying", meaning: "its container runs again, it is not ready", to: "b", state: inplace.Verifying},
	{name: "NextBatch", meaning: "its first container runs the new image, the next waits until it is ready", to: "both", at: isBetweenBatches, settings: inBatches},
	{name: "Resizing", meaning: "its node has granted the new size, and is to make it", to: "more cpu", at: shows(corev1.PodResizeInProgress), settings: withSizes},
	{name: "ResizeDeferred", meaning: "its node has no room for the new size", to: "more cpu", at: shows(corev1.PodResizePending), hold: fill, settings: withSizes},
	{name: "Recreating", meaning: "deleted, to be made again", to: "env", state: inplace.Recreating},
	{name: "Stuck: image", meaning: "its image cannot be pulled", to: "missing", state: inplace.Stuck, broken: true},
	{name: "Stuck: crash", meaning: "its container keeps crashing", to: "crash", state: inplace.Stuck, broken: true},
}

// hold gives the set a hook that takes its time.
func hold(s *settings) {
	hookedBy(hooks{inPlaceUpdate: true})(s)
	s.minHookDelay, s.hookDelay = 5, 5
}

// inBatches gives the containers an order, the first takes its time.
func inBatches(s *settings) {
	s.batches, s.slow = 2, "app"
}

// withSizes gives the pods resources.
func withSizes(s *settings) {
	replicas := s.replicas
	sizedBy(nil)(s)
	s.replicas = replicas
}

// shows waits for a condition of the pod.
func shows(condition corev1.PodConditionType) func(*World, *corev1.Pod) bool {
	return func(_ *World, pod *corev1.Pod) bool { return conditionIs(pod, condition, corev1.ConditionTrue) }
}

func isBetweenBatches(w *World, pod *corev1.Pod) bool {
	return inplace.Observe(pod, w.clock.Now()).Reason == inplace.ReasonNextBatch
}

// isReached reports whether a pod is in the state that is waited for.
func (s situation) isReached(w *World, pod *corev1.Pod) bool {
	if s.at != nil {
		return s.at(w, pod)
	}
	return w.stateOf(pod) == s.state
}

// holdPatches lets the server refuse to change pods.
func holdPatches(w *World) {
	w.fate = func(written write) fate {
		if written.isAbout("patch Pod") {
			return failed
		}
		return succeeds
	}
}

// overtaking is what happens to the pod in that state. It returns what is to be
// done later so that the set can become ready; nil for nothing.
type overtaking struct {
	name string
	do   func(w *World, pod string) (later func())
	// asks: it asks for a revision that becomes ready.
	asks bool
}

var overtakings = []overtaking{
	{"next revision", func(w *World, _ string) func() {
		if w.wish.name == "both" {
			to("level c")(w)
		} else {
			to("both")(w)
		}
		return nil
	}, true},
	{"previous revision", func(w *World, _ string) func() { to("a")(w); return nil }, true},
	{"labels only", func(w *World, _ string) func() { to("label")(w); return nil }, true},
	{"one that recreates", func(w *World, _ string) func() {
		if w.wish.name == "env" {
			to("b")(w)
		} else {
			to("env")(w)
		}
		return nil
	}, true},
	{"paused", func(w *World, _ string) func() { w.togglePause(); return w.togglePause }, false},
	{"OnDelete", func(w *World, _ string) func() { w.toggleOnDelete(); return w.toggleOnDelete }, false},
	{"partition raised", func(w *World, _ string) func() {
		partition := func(n int32) {
			w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(n) })
		}
		partition(3)
		return func() { partition(0) }
	}, false},
	{"scale-in", func(w *World, _ string) func() {
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](1) })
		return nil
	}, false},
	{"pod deleted", func(w *World, pod string) func() { _ = w.server.delete(objectKey{"Pod", pod}, nil); return nil }, false},
	{"node gone", func(w *World, pod string) func() {
		if held, ok := get[*corev1.Pod](w.server, pod); ok {
			w.node(held).deadSince = w.clock.Now()
		}
		return w.bringBackNode
	}, false},
	{"operator killed", func(w *World, _ string) func() {
		w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(20*time.Second)
		return nil
	}, false},
}

// reach returns a world with a set of a kind in which a pod is in the state of a situation, and the
// name of the pod.
func (s situation) reach(g Gomega, as func(*settings)) (*World, string) {
	settings := reference()
	as(&settings)
	settings.maxUnavailable, settings.gracePeriod, settings.endpointDelay, settings.minEndpointDelay = 1, 5*time.Second, 2, 2
	if s.settings != nil {
		s.settings(&settings)
	}
	w, err := newScenario(settings)
	g.Expect(err).NotTo(HaveOccurred())
	if s.hold != nil {
		s.hold(w)
	}
	changed := false
	to(s.to)(w)
	for range 120 {
		w.step()
		pods := all[*corev1.Pod](w.server)
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			changed = changed || revisionOf(pods[name]) == w.set().Status.UpdateRevision
			if s.isReached(w, pods[name]) && (s.state != inplace.Settled || changed) {
				return w, name
			}
		}
	}
	g.Expect(s.name).To(BeEmpty(), "no pod came into this state\n%s", w.story)
	return nil, ""
}

// overtake runs one cell, and returns what became of the pods.
func overtake(g Gomega, as func(*settings), s situation, o overtaking) string {
	w, pod := s.reach(g, as)
	before := w.uids()
	w.say("now: %s, while %s is %s", o.name, pod, s.name)
	later := o.do(w, pod)
	w.fate = nil
	w.settleOr(150 * time.Second)
	if later != nil {
		expectServing(g, w, s, o)
		w.say("and back")
		later()
		w.settleOr(150 * time.Second)
	}
	if s.broken && !o.asks {
		to("a")(w)
	}
	w.makeRoom()
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(meta.IsStatusConditionTrue(w.set().Status.Conditions, appsv1beta1.ConditionReady)).To(BeTrue(), w.story.String())
	restarts, remade := w.restarts(before)
	return words(restarts, remade)
}

// expectServing asserts that a rollout that was stopped has left no pod out of
// service that the user's word keeps at a revision that works.
func expectServing(g Gomega, w *World, s situation, o overtaking) {
	if s.broken || o.name == "node gone" {
		return
	}
	for name, pod := range all[*corev1.Pod](w.server) {
		g.Expect(w.isAvailable(pod)).To(BeTrue(), "%s serves while the rollout is stopped\n%s", name, w.story)
	}
}

func words(restarts, remade int) string {
	var said []string
	if restarts > 0 {
		said = append(said, fmt.Sprintf("%d restarts", restarts))
	}
	if remade > 0 {
		said = append(said, fmt.Sprintf("%d recreated", remade))
	}
	if len(said) == 0 {
		return "untouched"
	}
	return strings.Join(said, ", ")
}

// writeTable writes a table of what becomes of a kind of set, and a test for each
// cell.
func writeTable(t *testing.T, document *strings.Builder, name string, as func(*settings)) {
	t.Helper()
	names, line := "| State of a pod |", "|---|"
	for _, o := range overtakings {
		names += " " + o.name + " |"
		line += "---|"
	}
	document.WriteString(names + "\n" + line + "\n")
	for _, s := range situations {
		fmt.Fprintf(document, "| **%s**: %s |", s.name, s.meaning)
		for _, o := range overtakings {
			t.Run(name+"/"+s.name+"/"+o.name, func(t *testing.T) {
				fmt.Fprintf(document, " %s |", overtake(NewWithT(t), as, s, o))
			})
		}
		document.WriteString("\n")
	}
}

// Every state times everything that can overtake it: every cell ends ready. The
// table is written down in docs.
func TestAnyStateAnyRevision(t *testing.T) {
	var document strings.Builder
	document.WriteString(matrixHead)
	writeTable(t, &document, "StatefulSet", func(*settings) {})
	document.WriteString(clonesHead)
	writeTable(t, &document, "CloneSet", asClones(nil))
	if *update {
		if err := os.WriteFile(matrixFile, []byte(document.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := NewWithT(t)
	written, err := os.ReadFile(matrixFile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(written)).To(Equal(document.String()), "run the test with -update, and read the difference")
}

const matrixHead = `<!-- Generated by go test ./test/sim -run TestAnyStateAnyRevision -args -update. Do not edit. -->

# Any state, any revision

An update can be overtaken at any moment: by the next revision, by going back, by a pause, by a node that is lost. There is no state
from which a set does not get to what was asked for last.

Each cell is a test, run in a simulated cluster with the real controllers: three pods, one at a time, two containers each, a readiness
gate and a grace period of 5 s. The update runs until a pod is in the state at the left, then that happens which stands above. All
cells end with every pod ready at what was asked for last: a pause, a partition and OnDelete are taken back, a node comes back, and a
revision that never becomes ready is replaced by the previous one. While a rollout is stopped, every pod serves. The cell tells how
many containers restarted in all, and how many pods were recreated. In the row HookHeld the set has the lifecycle hook inPlaceUpdate, whose
controller takes 5 s for each answer; in the row NextBatch its containers have a launch order. In the rows Resizing and ResizeDeferred the
pods are to get more CPU; where the nodes are full, there is room in the end.

## StatefulSets

`

const clonesHead = `
## CloneSets

The same for a CloneSet without pods beyond replicas. What a recreation makes has another name.

`
