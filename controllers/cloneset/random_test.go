// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// model is a set whose pods have no readiness gate, so that a change in place is
// one write. Pods are ready, or are after some time, or never.
type model struct {
	t      *testing.T
	random *rand.Rand
	set    *appsv1beta1.CloneSet
	// update and current are the revisions.
	update, current *history.Revision
	pods            []*corev1.Pod
	now             time.Time
	names           int
	story           []string
}

func (m *model) tell(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

func (m *model) expect(holds bool, what string) {
	m.t.Helper()
	if !holds {
		m.t.Fatalf("%s\n%s", what, strings.Join(m.story, "\n"))
	}
}

func (m *model) newPod(revision *history.Revision) {
	m.names++
	image := revision.Template.Containers()[0].Image
	m.pods = append(m.pods, builders.Pod(fmt.Sprintf("sample-%05d", m.names), revision.Name(), image).
		Ready(false, m.now).With(func(pod *corev1.Pod) { pod.Spec.NodeName = fmt.Sprintf("node-%d", m.random.IntN(3)) }).Build())
}

// scope observes the set as the phases before scale do.
func (m *model) scope() *scope {
	s := newScope(m.set, m.now)
	s.Revisions = workload.Revisions{History: &history.History{}, Update: m.update, Current: m.current}
	for _, pod := range m.pods {
		s.members = append(s.members, &member{
			Pod: pod.DeepCopy(), broken: inplace.IsBroken(pod), turn: workload.TurnOf(pod, m.update.Name(), m.current.Name(), m.now),
		})
	}
	s.members = inUpdateOrder(s.members, nil, nil)
	for _, member := range s.members {
		from := m.update
		if inplace.RevisionOf(member.Pod) == m.current.Name() {
			from = m.current
		}
		member.facts = inplace.PodFacts{Pod: member.Pod, From: ptr.To(from.InPlace(from.Name()))}
		member.asked = inplace.AsksForDeletion(member.facts)
	}
	for i, state := range inplace.MakePlan(s.workload(s.members), m.now).Pods {
		s.members[i].serves, s.members[i].available, s.members[i].surges = state.Serves, state.Available, s.needsSurge(state)
	}
	return s
}

func (m *model) isAvailable(pod *corev1.Pod) bool {
	return workload.IsHealthy(pod, nil, 0, m.now)
}

func (m *model) count(is func(*corev1.Pod) bool) int {
	return len(slices.DeleteFunc(slices.Clone(m.pods), func(pod *corev1.Pod) bool { return !is(pod) }))
}

func (m *model) isUpdated(pod *corev1.Pod) bool {
	return inplace.RevisionOf(pod) == m.update.Name()
}

// staysUpdated leaves out what a user asks to be made again: the pod after it
// may be there already.
func (m *model) staysUpdated(pod *corev1.Pod) bool {
	_, asked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	return m.isUpdated(pod) && !asked
}

// step is one reconciliation. It reports whether anything was done.
func (m *model) step() bool {
	s := m.scope()
	before := m.counts()
	s.scaled = planScale(scaleFacts{
		members: s.members, replicas: int(m.set.GetReplicas()), partition: s.partition(), surge: int(m.set.GetMaxSurge()),
		maxUnavailable: int(m.set.GetMaxUnavailable()), stopped: s.isStopped(), paused: m.set.IsPaused(), limit: -1,
	})
	asked := s.workload(s.staying())
	asked.Target.CannotDrain = &inplace.Refusal{Reason: inplace.ReasonCannotDrain}
	plan := inplace.MakePlan(asked, m.now)
	for range s.scaled.atUpdate {
		m.newPod(m.update)
	}
	for range s.scaled.atCurrent {
		m.newPod(m.current)
	}
	for _, gone := range s.scaled.remove {
		m.delete(gone.Name)
	}
	for _, move := range plan.Moves {
		m.carryOut(move)
	}
	m.tell("created %d+%d, removed %v, waiting %v, moved %d: %s", s.scaled.atUpdate, s.scaled.atCurrent,
		namesOf(s.scaled.remove), namesOf(s.scaled.waiting), len(plan.Moves), m.state())
	m.check(before)
	return s.scaled.atUpdate+s.scaled.atCurrent+len(s.scaled.remove)+len(plan.Moves) > 0
}

// modelCounts are what the invariants are about.
type modelCounts struct {
	pods, available, updated int
}

func (m *model) counts() modelCounts {
	return modelCounts{len(m.pods), m.count(m.isAvailable), m.count(m.staysUpdated)}
}

// check asserts the invariants on what one reconciliation did.
func (m *model) check(before modelCounts) {
	m.t.Helper()
	after, replicas := m.counts(), int(m.set.GetReplicas())
	m.expect(after.available >= min(before.available, replicas-int(m.set.GetMaxUnavailable())), "invariant 1: too few available pods")
	m.expect(after.pods <= max(before.pods, replicas+int(m.set.GetMaxSurge())), "too many pods")
	if m.update.Name() != m.current.Name() {
		m.expect(after.updated <= max(before.updated, replicas-int(m.set.GetPartition())), "invariant 2: too many updated pods")
	}
}

func (m *model) delete(name string) {
	m.pods = slices.DeleteFunc(m.pods, func(pod *corev1.Pod) bool { return pod.Name == name })
}

func (m *model) carryOut(move inplace.Move) {
	switch move.Step.Action {
	case inplace.Recreate:
		m.delete(move.Pod.Name)
	case inplace.Patch:
		i := slices.IndexFunc(m.pods, func(pod *corev1.Pod) bool { return pod.Name == move.Pod.Name })
		uid := m.pods[i].UID
		m.pods[i] = builders.Pod(move.Pod.Name, m.update.Name(), m.update.Template.Containers()[0].Image).Ready(false, m.now).
			With(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.UID = move.Pod.Spec.NodeName, uid }).Build()
	case inplace.MarkNotReady, inplace.MarkReady, inplace.SetLifecycle, inplace.Resize, inplace.Wait, inplace.ChangeClaims:
		m.t.Fatalf("unexpected move: %s", move.Note)
	}
}

// state shows the pods in short: o old, n new; a capital one is available.
func (m *model) state() string {
	letters := ""
	for _, pod := range m.pods {
		letter := "o"
		if m.isUpdated(pod) {
			letter = "n"
		}
		if m.isAvailable(pod) {
			letter = strings.ToUpper(letter)
		}
		letters += letter
	}
	return letters
}

// happen is what others do: containers become ready, or fail.
func (m *model) happen() {
	m.now = m.now.Add(time.Second)
	for i, pod := range m.pods {
		ready := m.isAvailable(pod)
		if !ready && m.random.IntN(2) == 0 || ready && m.random.IntN(20) == 0 {
			m.setReady(i, !ready)
		}
	}
}

func (m *model) setReady(i int, ready bool) {
	conditions := builders.Pod("", "", "").Ready(ready, m.now).Build().Status.Conditions
	m.pods[i].Status.Conditions = conditions
}

// change is what the user does.
func (m *model) change() {
	rolling := m.set.Spec.UpdateStrategy.RollingUpdate
	switch m.random.IntN(8) {
	case 0:
		m.set.Spec.Replicas = ptr.To(int32(m.random.IntN(6)))
	case 1:
		m.set = builders.CloneSet("default", "sample", "").Replicas(m.set.GetReplicas()).Partition(m.random.Int32N(5)).
			MaxSurge(m.random.Int32N(4)).MaxUnavailable(m.random.Int32N(3)).Policy(m.policy()).Build()
	case 2:
		rolling.Paused = !rolling.Paused
	case 3:
		if len(m.pods) > 0 {
			m.pods[m.random.IntN(len(m.pods))].Labels[appsv1beta1.SpecifiedDeleteKey] = "true"
		}
	case 4:
		m.update, m.current = m.current, m.update
	default:
		return
	}
	m.tell("the user: replicas %d, partition %d, surge %d, unavailable %d, paused %t, %s to %s", m.set.GetReplicas(), m.set.GetPartition(),
		m.set.GetMaxSurge(), m.set.GetMaxUnavailable(), m.set.IsPaused(), m.current.Name(), m.update.Name())
}

func (m *model) policy() appsv1beta1.PodUpdateStrategyType {
	if m.random.IntN(2) == 0 {
		return appsv1beta1.RecreatePodUpdateStrategyType
	}
	return appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
}

// Whatever user and pods do: the invariants hold after every reconciliation, and
// when they leave the set alone, it comes to rest as it is wanted.
func TestRandomRollouts(t *testing.T) {
	template := builders.CloneSet("", "sample", "nginx:alpine").Ungated().Build().Spec.Template
	current := revisionOf(t, "sample-old", template)
	template.Spec.Containers[0].Image = "nginx:latest"
	update := revisionOf(t, "sample-new", template)
	for seed := range uint64(400) {
		m := &model{
			t: t, random: rand.New(rand.NewPCG(seed, 1)), update: update, current: current, now: builders.Start,
			set: builders.CloneSet("default", "sample", "").Replicas(4).Build(),
		}
		m.tell("seed %d", seed)
		for range 4 {
			m.newPod(current)
			m.setReady(len(m.pods)-1, true)
		}
		for range 60 {
			m.change()
			m.step()
			m.happen()
		}
		m.set.Spec.UpdateStrategy.RollingUpdate.Paused = false
		if m.set.GetMaxUnavailable() == 0 {
			m.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
		}
		m.comeToRest()
	}
}

// comeToRest lets all pods become ready, until nothing is left to do.
func (m *model) comeToRest() {
	m.t.Helper()
	m.tell("everybody leaves the set alone")
	for range 100 {
		for i := range m.pods {
			m.setReady(i, true)
		}
		m.now = m.now.Add(time.Second)
		if !m.step() {
			replicas := int(m.set.GetReplicas())
			m.expect(len(m.pods) == replicas, "another number of pods")
			m.expect(m.count(m.isUpdated) >= replicas-int(m.set.GetPartition()), "the update did not end")
			return
		}
	}
	m.expect(false, "not at rest")
}
