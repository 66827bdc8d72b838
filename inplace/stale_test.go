// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// freeze lets the planner see the pods as they were, until thaw is called.
func (m *model) freeze(seen []PodFacts) (thaw func()) {
	current := m.view
	m.view = func([]PodFacts) []PodFacts {
		again := slices.Clone(seen)
		for i := range again {
			again[i].Pod = again[i].Pod.DeepCopy()
			again[i].Held = m.keeps(again[i].Pod)
		}
		return again
	}
	return func() { m.view = current }
}

// runUntil runs until a pod is as wished.
func (m *model) runUntil(reached func() bool) {
	m.t.Helper()
	for range 100 {
		if reached() {
			return
		}
		m.round()
	}
	m.fail("not reached")
}

// The pod was changed, and the planner does not see it yet. Told to go back, it
// believes that the drained pod only has to be put into service; the pod would
// take traffic while the kubelet stops its container.
func TestStaleReadDoesNotPutAChangedPodIntoService(t *testing.T) {
	for name, disturb := range map[string]func(m *model){
		"rolled back": toRevision("a"),
		"paused":      func(m *model) { m.workload.Stopped = true },
		"held":        func(m *model) { m.partition = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 1, 1, true)
			toRevision("b")(m)
			n := m.nodes[0]
			m.runUntil(func() bool { return IsMarkedNotReady(n.pod) && !isReady(n.pod) })
			drained := m.facts()
			m.runUntil(func() bool { return RevisionOf(n.pod) == "b" })
			n.silent = m.now.Add(2 * time.Second)
			thaw := m.freeze(drained)
			disturb(m)
			m.round()
			thaw()
			m.runUntilQuiet()
		})
	}
}

// The pod was changed to c, and the planner does not see it yet. Told to go from
// a to label, it believes that only a label differs; the pod would say label and
// run c for ever.
func TestStaleReadDoesNotMislabelAPod(t *testing.T) {
	m := newModel(t, 1, 1, false)
	m.workload.Target.CannotDrain = unheeded
	thaw := m.freeze(m.facts())
	toRevision("c")(m)
	m.round()
	m.Expect(RevisionOf(m.nodes[0].pod)).To(Equal("c"))
	toRevision("label")(m)
	m.round()
	thaw()
	m.runUntilQuiet()
	m.Expect(m.nodes[0].running).To(Equal(alpineImage))
}
