// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const (
	inPlaceIfPossible = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	inPlaceOnly       = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	reCreate          = appsv1beta1.RecreatePodUpdateStrategyType
)

// event is something that happens in the middle of a rollout.
type event struct {
	second int
	say    string
	do     func(m *model)
}

func toRevision(name string) func(m *model) {
	return func(m *model) { m.target(name, inPlaceIfPossible) }
}

// rollout is a run of the model that is compared with a golden file.
type rollout struct {
	// name is the golden file's, and says what is shown.
	name                     string
	replicas, maxUnavailable int
	ungated                  bool
	setup                    func(m *model)
	events                   []event
	// ends holds what each pod is like in the end; see node.describe.
	ends []string
}

var rollouts = []rollout{
	{
		name: "three pods, one at a time", replicas: 3, maxUnavailable: 1,
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 3),
	},
	{
		name: "five pods, two at a time", replicas: 5, maxUnavailable: 2,
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 5),
	},
	{
		name: "without a readiness gate", replicas: 3, maxUnavailable: 1, ungated: true,
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 3),
	},
	{
		name: "without a readiness gate and without a policy", replicas: 3, maxUnavailable: 1, ungated: true,
		setup:  func(m *model) { m.workload.Target.CannotDrain = unheeded },
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 3),
	},
	{
		name: "partition 2 of 5", replicas: 5, maxUnavailable: 1,
		setup:  func(m *model) { m.partition = 2 },
		events: []event{{0, "target b", toRevision("b")}},
		ends:   append(repeat("at a, ready, pod number 1, container number 1", 2), inPlaceAt("b", 3)...),
	},
	{
		name: "paused in the middle and resumed", replicas: 4, maxUnavailable: 2,
		events: []event{
			{0, "target b", toRevision("b")},
			{5, "paused, while two pods restart", func(m *model) { m.workload.Stopped = true }},
			{30, "resumed", func(m *model) { m.workload.Stopped = false }},
			{32, "paused, while two pods are drained", func(m *model) { m.workload.Stopped = true }},
			{60, "resumed", func(m *model) { m.workload.Stopped = false }},
		},
		ends: inPlaceAt("b", 4),
	},
	{
		name: "an image that does not exist, then back", replicas: 3, maxUnavailable: 1,
		events: []event{{0, "target missing", toRevision("missing")}, {60, "target a", toRevision("a")}},
		ends: append(repeat("at a, ready, pod number 1, container number 1", 2),
			"at a, ready, pod number 1, container number 2"),
	},
	{
		name: "a third revision in the middle", replicas: 4, maxUnavailable: 2,
		events: []event{{0, "target b", toRevision("b")}, {6, "target c", toRevision("c")}},
		ends: append(repeat("at c, ready, pod number 1, container number 2", 2),
			repeat("at c, ready, pod number 1, container number 3", 2)...),
	},
	{
		name: "rolled back while the kubelet is busy in a long stop", replicas: 2, maxUnavailable: 1,
		setup: func(m *model) { m.nodes[1].stopTime = 25 * time.Second },
		events: []event{
			{0, "target b", toRevision("b")},
			{8, "target a", toRevision("a")},
		},
		ends: []string{"at a, ready, pod number 1, container number 1", "at a, ready, pod number 1, container number 3"},
	},
	{
		name: "rolled back before the kubelet acts", replicas: 2, maxUnavailable: 1,
		events: []event{
			{0, "target b", toRevision("b")},
			{3, "the kubelet of sample-1 hangs", func(m *model) { m.nodes[1].silent = m.now.Add(20 * time.Second) }},
			{8, "target a", toRevision("a")},
		},
		ends: repeat("at a, ready, pod number 1, container number 1", 2),
	},
	{
		name: "broken pods at the start", replicas: 5, maxUnavailable: 1,
		setup:  func(m *model) { m.breakPods("crash", 0, 2) },
		events: []event{{0, "target b", toRevision("b")}},
		ends: []string{
			"at b, ready, pod number 1, container number 3", "at b, ready, pod number 1, container number 2",
			"at b, ready, pod number 1, container number 3", "at b, ready, pod number 1, container number 2",
			"at b, ready, pod number 1, container number 2",
		},
	},
	{
		name: "recreated for an env change", replicas: 3, maxUnavailable: 1,
		events: []event{{0, "target env", toRevision("env")}},
		ends:   repeat("at env, ready, pod number 2, container number 2", 3),
	},
	{
		name: "InPlaceOnly refuses an env change", replicas: 2, maxUnavailable: 1,
		events: []event{
			{0, "target env", func(m *model) { m.target("env", inPlaceOnly) }},
			{20, "target b", func(m *model) { m.target("b", inPlaceOnly) }},
			{22, "target env, while sample-1 is drained", func(m *model) { m.target("env", inPlaceOnly) }},
		},
		ends: repeat("at a, ready, pod number 1, container number 1", 2),
	},
	{
		name: "labels only", replicas: 3, maxUnavailable: 1,
		events: []event{{0, "target label", toRevision("label")}},
		ends:   repeat("at label, ready, pod number 1, container number 1", 3),
	},
	{
		name: "a policy denies the change from the beginning", replicas: 3, maxUnavailable: 2,
		events: []event{
			{0, "a policy denies b", func(m *model) { m.denied = "b" }},
			{1, "target b", toRevision("b")},
			{20, "target c", toRevision("c")},
		},
		ends: inPlaceAt("c", 3),
	},
	{
		name: "a policy denies the change from the middle on", replicas: 4, maxUnavailable: 2,
		setup: func(m *model) { m.workload.Target.GracePeriod = 10 * time.Second },
		events: []event{
			{0, "target b", toRevision("b")},
			{25, "a policy denies b, while two pods are drained", func(m *model) { m.denied = "b" }},
		},
		ends: append(repeat("at a, ready, pod number 1, container number 1", 2), inPlaceAt("b", 2)...),
	},
	{
		name: "a policy that denied the change is gone", replicas: 2, maxUnavailable: 1,
		events: []event{
			{0, "a policy denies b", func(m *model) { m.denied = "b" }},
			{1, "target b", toRevision("b")},
			{20, "the policy is gone", func(m *model) { m.denied = "" }},
		},
		ends: inPlaceAt("b", 2),
	},
	{
		name: "a grace period of 10 seconds", replicas: 2, maxUnavailable: 1,
		setup:  func(m *model) { m.workload.Target.GracePeriod = 10 * time.Second },
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 2),
	},
	{
		name: "kept ready, for which no grace period is waited", replicas: 3, maxUnavailable: 1,
		setup: func(m *model) {
			m.workload.Target.GracePeriod, m.workload.Target.KeepReady = 10*time.Second, []string{"main"}
		},
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 3),
	},
	{
		name: "kept ready and crashing, then back", replicas: 3, maxUnavailable: 1,
		setup:  func(m *model) { m.workload.Target.KeepReady = []string{"main"} },
		events: []event{{0, "target crash", toRevision("crash")}, {30, "target a", toRevision("a")}},
		ends: append(repeat("at a, ready, pod number 1, container number 1", 2),
			"at a, ready, pod number 1, container number 3"),
	},
	{
		name: "kept ready, overtaken by a change that drains", replicas: 2, maxUnavailable: 1,
		setup: func(m *model) { m.workload.Target.KeepReady = []string{"main"} },
		events: []event{
			{0, "target b", toRevision("b")},
			{2, "target c, nothing is kept ready", func(m *model) {
				m.workload.Target.KeepReady = nil
				m.target("c", inPlaceIfPossible)
			}},
		},
		ends: []string{"at c, ready, pod number 1, container number 2", "at c, ready, pod number 1, container number 3"},
	},
	{
		name: "minReadySeconds 10", replicas: 2, maxUnavailable: 1,
		setup:  func(m *model) { m.workload.MinReadySeconds = 10 },
		events: []event{{0, "target b", toRevision("b")}},
		ends:   inPlaceAt("b", 2),
	},
}

func TestRollouts(t *testing.T) {
	for _, r := range rollouts {
		t.Run(r.name, func(t *testing.T) {
			m := newModel(t, r.replicas, r.maxUnavailable, !r.ungated)
			if r.setup != nil {
				r.setup(m)
			}
			for _, e := range r.events {
				for m.now.Before(m.start.Add(time.Duration(e.second) * time.Second)) {
					m.round()
				}
				m.say("user: %s", e.say)
				e.do(m)
			}
			m.runUntilQuiet()
			for i, n := range m.nodes {
				m.Expect(n.describe()).To(HaveSuffix(r.ends[i]), m.log.String())
			}
			compareGolden(t, r.name, m.log.String())
		})
	}
}

func compareGolden(t *testing.T, name, log string) {
	t.Helper()
	file := filepath.Join("testdata", "rollouts", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(log), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Expect(log).To(Equal(string(golden)), "run the test with -update, and read the difference")
}

// breakPods changes pods to a revision that does not run, behind the planner's
// back.
func (m *model) breakPods(revision string, ordinals ...int) {
	for _, i := range ordinals {
		n := m.nodes[i]
		n.pod.Labels[appsv1beta1.ControllerRevisionHashLabel] = revision
		n.pod.Spec.Containers[0].Image = m.revisions[revision].Template.Containers()[0].Image
		n.wanted = n.pod.Spec.Containers[0].Image
		n.startContainer()
		n.listed = false
	}
}

func inPlaceAt(revision string, pods int) []string {
	return repeat("at "+revision+", ready, pod number 1, container number 2", pods)
}

func repeat(s string, times int) []string {
	all := make([]string, times)
	for i := range all {
		all[i] = s
	}
	return all
}
