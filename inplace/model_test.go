// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// model is what surrounds the planner, as small as it can be: an API server that
// holds pods, a node for each of them (see node), an endpoint controller, and a
// workload controller that makes missing pods and carries out the planner's
// moves. Time goes on by a second per round, nothing happens in between. After
// each write it asserts the invariants of a rollout.
type model struct {
	*WithT
	t        *testing.T
	start    time.Time
	now      time.Time
	workload Workload
	// partition keeps the pods with a smaller ordinal at their revision; those
	// that are made again come back at current.
	partition int
	current   string
	revisions map[string]*Revision
	gated     bool
	nodes     []*node
	version   int

	// view returns what the planner gets to see of the pods; the truth by
	// default. refuses, if set, makes a write fail.
	view func(truth []PodFacts) []PodFacts
	// stale: the view is older than the truth, so the planner cannot keep a
	// budget in terms of the truth.
	stale   bool
	refuses func() bool
	// denied is the revision that an admission policy keeps pods from; none if
	// empty.
	denied string

	log      strings.Builder
	lastLine time.Time
	waits    map[string]string
}

// newModel returns a model with pods that are settled at revision a.
func newModel(t *testing.T, replicas, maxUnavailable int, gated bool) *model {
	t.Helper()
	m := &model{
		WithT: NewWithT(t), t: t, start: patched, now: patched, gated: gated, current: "a",
		workload: Workload{Replicas: replicas, MaxUnavailable: maxUnavailable},
		view:     func(truth []PodFacts) []PodFacts { return truth },
		waits:    map[string]string{},
	}
	m.revisions = map[string]*Revision{}
	for name, template := range map[string]string{
		"a":       `{"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`,
		"b":       `{"spec":{"containers":[{"name":"main","image":"nginx:latest"}]}}`,
		"c":       `{"spec":{"containers":[{"name":"main","image":"nginx:third"}]}}`,
		"missing": `{"spec":{"containers":[{"name":"main","image":"nginx:missing"}]}}`,
		"crash":   `{"spec":{"containers":[{"name":"main","image":"nginx:crash"}]}}`,
		"label":   `{"metadata":{"labels":{"tier":"web"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}}`,
		"env":     `{"spec":{"containers":[{"name":"main","image":"nginx:latest","env":[{"name":"LEVEL","value":"debug"}]}]}}`,
	} {
		m.revisions[name] = &Revision{Name: name, Template: parse(t, template)}
	}
	m.target("a", appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	for i := range replicas {
		name := fmt.Sprintf("sample-%d", i)
		n := &node{model: m, name: name, stopTime: 2 * time.Second, readyTime: 2 * time.Second, listTime: time.Second}
		n.boot(builders.Pod(name, "a", alpineImage), gated)
		m.nodes = append(m.nodes, n)
	}
	return m
}

func (m *model) target(revision string, policy appsv1beta1.PodUpdateStrategyType) {
	m.workload.Target.Revision, m.workload.Target.Policy = *m.revisions[revision], policy
}

func (m *model) say(format string, args ...any) {
	when := fmt.Sprintf("+%ds", int(m.now.Sub(m.start).Seconds()))
	if m.now.Equal(m.lastLine) {
		when = ""
	}
	m.lastLine = m.now
	fmt.Fprintf(&m.log, "%-6s %s\n", when, fmt.Sprintf(format, args...))
}

// fail ends the test with what led to the failure.
func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), m.log.String())
}

// round lets a second pass, and returns the plan made at its end.
func (m *model) round() Plan {
	m.t.Helper()
	m.now = m.now.Add(time.Second)
	for _, n := range m.nodes {
		n.step()
	}
	for i, n := range m.nodes {
		n.stepEndpoints()
		if n.pod == nil {
			m.create(i)
		}
	}
	w := m.workload
	w.Pods = m.view(m.facts())
	plan := MakePlan(w, m.now)
	m.checkAccounting(plan)
	m.checkDenied(w, plan)
	for _, move := range plan.Moves {
		m.carryOut(move)
	}
	m.sayWaits(plan)
	return plan
}

// facts returns the pods, the highest ordinal first.
func (m *model) facts() []PodFacts {
	facts := make([]PodFacts, 0, len(m.nodes))
	for _, n := range slices.Backward(m.nodes) {
		if n.pod == nil {
			continue
		}
		f := PodFacts{Pod: n.pod.DeepCopy(), From: m.revisions[RevisionOf(n.pod)], Held: m.keeps(n.pod)}
		if n.listed {
			f.Services = []string{"web"}
		}
		if m.denied == m.workload.Target.Name {
			f.Refused = &Refusal{Reason: ReasonAdmissionDenied, Message: "denied by a policy"}
		}
		facts = append(facts, f)
	}
	return facts
}

// keeps reports whether the partition keeps the pod at its revision.
func (m *model) keeps(pod *corev1.Pod) bool {
	return slices.IndexFunc(m.nodes, func(n *node) bool { return n.name == pod.Name }) < m.partition
}

// checkAccounting: a pod that is not settled moves or names its blocker; one
// that the user holds back may rest.
func (m *model) checkAccounting(plan Plan) {
	m.t.Helper()
	named := map[string]bool{}
	for _, move := range plan.Moves {
		named[move.Pod.Name] = true
	}
	for _, b := range plan.Blockers {
		named[b.Pod.Name] = true
		if b.Reason == "" || b.Message == "" {
			m.fail("the blocker of %s says nothing: %+v", b.Pod.Name, b)
		}
	}
	for _, p := range plan.Pods {
		if p.Step.LeadsToPatch != leadsToPatch(p.Step) {
			m.fail("%s is %s, and LeadsToPatch is %t", p.Pod.Name, p.Step.State, p.Step.LeadsToPatch)
		}
		if p.Step.State != Settled && !named[p.Pod.Name] {
			m.fail("%s is %s, and neither moves nor names a blocker", p.Pod.Name, p.Step.State)
		}
	}
}

// checkDenied: nothing that leads to a refused change is begun, or gone on with.
func (m *model) checkDenied(w Workload, plan Plan) {
	m.t.Helper()
	for _, move := range plan.Moves {
		i := slices.IndexFunc(w.Pods, func(f PodFacts) bool { return f.Pod.Name == move.Pod.Name })
		if w.Pods[i].Refused != nil && move.Step.LeadsToPatch {
			m.fail("%s, and the server refuses it", move.Note)
		}
	}
}

// carryOut applies a move as the executor does, and asserts the invariants that
// a single write could break.
func (m *model) carryOut(move Move) {
	m.t.Helper()
	i := slices.IndexFunc(m.nodes, func(n *node) bool { return n.pod != nil && n.pod.UID == move.Pod.UID })
	if i < 0 || m.refuses != nil && m.refuses() {
		m.say("%s %s: refused", move.Step.Action, move.Pod.Name)
		return
	}
	n := m.nodes[i]
	m.say("%s", move.Note)
	served, wasRevision := n.available(), RevisionOf(n.pod)
	switch move.Step.Action {
	case MarkReady, MarkNotReady:
		m.patchStatus(n, move)
	case Patch:
		m.patchPod(n, move)
	case Recreate:
		n.delete()
	case SetLifecycle, Resize, ChangeClaims:
		m.fail("a workload without hooks and sizes: %s", move.Note)
	case Wait:
		m.fail("a move that does nothing: %s", move.Note)
	}
	if left := m.available(); !m.stale && served && !n.available() && left < m.workload.Replicas-m.workload.MaxUnavailable {
		m.fail("invariant 1: %s left %d pods available", move.Note, left)
	}
	recreates := move.Step.Action == Recreate && move.Step.Reason != ReasonSpecifiedDelete
	if moved := RevisionOf(n.pod) != wasRevision || recreates; moved && i < m.partition {
		m.fail("invariant 2: %s, which the partition holds", move.Note)
	}
	image := m.revisions[RevisionOf(n.pod)].Template.Containers()[0].Image
	if runs := n.pod.Spec.Containers[0].Image; runs != image && observedOf(n.pod, m.now).state.EquivalentImages["main"] != image {
		m.fail("invariant 3: %s is labeled %s and runs %s", n.pod.Name, RevisionOf(n.pod), n.pod.Spec.Containers[0].Image)
	}
}

func (m *model) available() int {
	available := 0
	for _, n := range m.nodes {
		if n.available() {
			available++
		}
	}
	return available
}

func (m *model) patchStatus(n *node, move Move) {
	m.t.Helper()
	patch, err := ReadinessPatch(move.Pod, move.Step, metav1.NewTime(m.now))
	m.Expect(err).NotTo(HaveOccurred())
	result := m.merge(n, patch)
	if result == nil {
		return
	}
	if !apiequality.Semantic.DeepEqual(result.Spec, n.pod.Spec) {
		m.fail("a patch of the status changed the spec: %s", patch)
	}
	n.pod.Labels, n.pod.Status = result.Labels, result.Status
	n.written()
}

// drains reports whether pods can be drained, by their gate or by the label.
func (m *model) drains() bool { return m.gated || m.workload.Target.CannotDrain == nil }

func (m *model) patchPod(n *node, move Move) {
	m.t.Helper()
	patch, err := RevisionPatch(move.Pod, move.Step)
	m.Expect(err).NotTo(HaveOccurred())
	result := m.merge(n, patch)
	if result == nil {
		return
	}
	if done := RestartedOnRequest(n.pod); move.Step.OnRequest && done != nil && done.UID == n.request {
		m.fail("%s was restarted for %s before", n.pod.Name, n.request)
	}
	if !apiequality.Semantic.DeepEqual(result.Status, n.pod.Status) {
		m.fail("a patch of the pod changed the status: %s", patch)
	}
	if !apiequality.Semantic.DeepEqual(result.Spec, n.pod.Spec) {
		if !strings.Contains(string(patch), `"resourceVersion"`) {
			m.fail("restarts a container without a precondition: %s", patch)
		}
		n.keptReady = slices.Contains(m.workload.Target.KeepReady, "main")
		if m.drains() && !n.keptReady && (isReady(n.pod) || n.listed) {
			m.fail("invariant 4: %s, and it serves", move.Note)
		}
		result.Generation++
	}
	n.pod = result
	n.written()
}

// merge returns what the API server makes of a patch, nil for a conflict.
func (m *model) merge(n *node, patch []byte) *corev1.Pod {
	m.t.Helper()
	precondition := metav1.PartialObjectMetadata{}
	m.Expect(json.Unmarshal(patch, &precondition)).To(Succeed())
	if precondition.UID == "" {
		m.fail("a patch without a UID: %s", patch)
	}
	version := precondition.ResourceVersion
	if precondition.UID != n.pod.UID || version != "" && version != n.pod.ResourceVersion {
		m.say("       conflict")
		return nil
	}
	before, err := json.Marshal(n.pod)
	m.Expect(err).NotTo(HaveOccurred())
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	m.Expect(err).NotTo(HaveOccurred())
	result := &corev1.Pod{}
	m.Expect(json.Unmarshal(after, result)).To(Succeed())
	return result
}

// create makes the pod with an ordinal again.
func (m *model) create(i int) {
	revision := m.workload.Target.Name
	if i < m.partition {
		revision = m.current
	}
	n := m.nodes[i]
	n.incarnation++
	image := m.revisions[revision].Template.Containers()[0].Image
	pod := builders.Pod(n.name, revision, image).With(func(p *corev1.Pod) {
		p.UID = types.UID(fmt.Sprintf("uid-%s-%d", p.Name, n.incarnation))
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	})
	if m.gated {
		pod.Gated("", m.now)
	}
	n.pod = pod.Build()
	n.written()
	m.say("%s is made, at %s", n.pod.Name, revision)
}

// sayWaits logs the blockers that were not there a round before.
func (m *model) sayWaits(plan Plan) {
	waits := map[string]string{}
	for _, b := range plan.Blockers {
		waits[b.Pod.Name] = string(b.State) + b.Reason
		if m.waits[b.Pod.Name] != waits[b.Pod.Name] {
			m.say("%s waits, %s: %s: %s", b.Pod.Name, b.State, b.Reason, b.Message)
		}
	}
	m.waits = waits
}

// runUntilQuiet runs until nothing has happened for longer than any delay of the
// model, and asserts that the planner then writes nothing any more.
func (m *model) runUntilQuiet() Plan {
	m.t.Helper()
	const quiet, limit = 70 * time.Second, 2 * time.Hour
	for until := m.now.Add(limit); m.now.Before(until); {
		plan := m.round()
		busy := slices.ContainsFunc(m.nodes, (*node).busy)
		if !busy && m.now.Sub(m.lastLine) > quiet && !plan.Recheck.After(m.now) {
			m.sayEnd()
			return plan
		}
	}
	m.fail("not quiet after %s", limit)
	return Plan{}
}

func (m *model) sayEnd() {
	fmt.Fprintln(&m.log, "quiet")
	for _, n := range m.nodes {
		fmt.Fprintf(&m.log, "%-6s %s\n", "", n.describe())
	}
}
