// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

var kind = appsv1beta1.GroupVersion.WithKind("StatefulSet")

// TestUpdatesAreCounted: once for each pod, however many writes it takes, and only what
// the operator does to bring it to its revision.
func TestUpdatesAreCounted(t *testing.T) {
	record := &appsv1beta1.InPlaceUpdateState{Revision: "b"}
	sizes := inplace.Step{Action: inplace.Resize, Change: inplace.Change{}}
	sizesAndLabel := sizes
	sizesAndLabel.Record = record
	for name, tc := range map[string]struct {
		revision string
		step     inplace.Step
		way      string
	}{
		"a change":                  {"a", inplace.Step{Action: inplace.Patch, Record: record}, wayInPlace},
		"its second batch":          {"b", inplace.Step{Action: inplace.Patch, Record: record}, ""},
		"sizes and the label":       {"a", sizesAndLabel, wayInPlace},
		"sizes before the change":   {"a", sizes, ""},
		"a drain":                   {"a", inplace.Step{Action: inplace.MarkNotReady}, ""},
		"back in service":           {"b", inplace.Step{Action: inplace.MarkReady}, ""},
		"a recreation":              {"a", inplace.Step{Action: inplace.Recreate, Reason: inplace.ReasonFieldImmutable}, wayRecreate},
		"one for sizes":             {"b", inplace.Step{Action: inplace.Recreate, Reason: inplace.ReasonResizeInfeasible, Evict: true}, wayRecreate},
		"one for claims":            {"b", inplace.Step{Action: inplace.Recreate, Reason: volumes.ReasonVolumeInUse, Claims: volumes.Claims{{}}}, wayRecreate},
		"one for a claim it lacks":  {"b", inplace.Step{Action: inplace.Recreate, Reason: inplace.ReasonClaimTemplatesChanged}, wayRecreate},
		"one that a user asked for": {"a", inplace.Step{Action: inplace.Recreate, Reason: inplace.ReasonSpecifiedDelete}, ""},
		"one of a pod that ended":   {"a", inplace.Step{Action: inplace.Recreate, Reason: inplace.ReasonEnded}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, metrics := NewWithT(t), NewMetrics()
			e := &Executor{Metrics: metrics.Of(kind)}
			e.count("b", inplace.Move{Pod: builders.Pod("sample-0", tc.revision, "nginx").Build(), Step: tc.step})
			for _, way := range []string{wayInPlace, wayRecreate} {
				want := 0.
				if way == tc.way {
					want = 1
				}
				g.Expect(testutil.ToFloat64(metrics.updates.WithLabelValues("StatefulSet.apps.kruise.io", way))).To(Equal(want), way)
			}
			(&Executor{}).count("b", inplace.Move{Pod: builders.Pod("sample-0", tc.revision, "nginx").Build(), Step: tc.step})
		})
	}
}

func TestOnlyWhatWasWrittenIsCounted(t *testing.T) {
	r, metrics := newRig(t), NewMetrics()
	r.executor.Metrics = metrics.Of(kind)
	pods := []inplace.Move{}
	for _, name := range []string{"sample-0", "sample-1", "sample-2"} {
		pods = append(pods, inplace.Move{Pod: builders.Pod(name, "a", "nginx:alpine").Build(), Step: inplace.Step{Action: inplace.Recreate}})
	}
	r.errs["sample-1"] = apierrors.NewInternalError(errors.New("no quorum"))
	r.executor.Run(t.Context(), r.workload, "b", pods)
	r.Expect(testutil.ToFloat64(metrics.Of(kind).recreated)).To(Equal(2.))
}

func TestPlanningIsTimed(t *testing.T) {
	g, metrics := NewWithT(t), NewMetrics()
	e := New(nil, nil, clocktesting.NewFakePassiveClock(builders.Start))
	e.makePlan(inplace.Workload{}, builders.Start)
	g.Expect(testutil.CollectAndCount(metrics.planning)).To(BeZero())

	e.Metrics = metrics.Of(kind)
	e.clock = &slowClock{FakePassiveClock: clocktesting.NewFakePassiveClock(builders.Start)}
	e.makePlan(inplace.Workload{}, builders.Start)
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(metrics.planning)).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families[0].Metric[0].GetHistogram().GetSampleSum()).To(Equal(0.25))
	g.Expect(families[0].Metric[0].GetHistogram().GetSampleCount()).To(BeEquivalentTo(1))
	g.Expect(metrics.Of(kind)).NotTo(BeNil())
	g.Expect((*Metrics)(nil).Of(kind)).To(BeNil())
}

// TestPullsAreCounted: each outcome once, however often it is seen.
func TestPullsAreCounted(t *testing.T) {
	y, metrics := newYard(t, 3), NewMetrics()
	y.rig.executor.Metrics = metrics.Of(kind)
	y.workload.Target.Pull.Policy = appsv1beta1.PreferImagePull
	counts := func() string {
		of := func(result string) int {
			return int(testutil.ToFloat64(metrics.pulls.WithLabelValues("StatefulSet.apps.kruise.io", result)))
		}
		return fmt.Sprintf("%d pulled, %d failed, %d given up", of(resultPulled), of(resultFailed), of(resultGivenUp))
	}
	took := func() float64 {
		registry := prometheus.NewPedanticRegistry()
		y.Expect(registry.Register(metrics.pulling)).To(Succeed())
		families, err := registry.Gather()
		y.Expect(err).NotTo(HaveOccurred())
		return families[0].Metric[0].GetHistogram().GetSampleSum()
	}
	y.lists("node-0", "docker.io/library/nginx:latest")
	y.taken()
	y.Expect(y.pullingNodes()).To(Equal([]string{"node-1", "node-2"}))
	y.says("node-2", begun)
	y.says("node-1", failed)
	y.taken()
	y.taken()
	y.Expect(counts()).To(Equal("0 pulled, 1 failed, 0 given up"), "a node that has the image pulls nothing")
	y.clock.Step(time.Minute)
	y.says("node-2", pulled)
	y.taken()
	y.taken()
	y.Expect(counts()).To(Equal("1 pulled, 1 failed, 0 given up"))
	y.Expect(took()).To(BeNumerically("~", 63, 1), "seconds since the pod that pulls was made")
	y.clock.Step(5 * time.Minute)
	y.taken()
	y.taken()
	y.Expect(counts()).To(Equal("1 pulled, 1 failed, 1 given up"))
}

// Where nodes are given up, the plan is made again in the same pass, and looks at them again.
func TestPullThatIsGivenUpIsCountedOnce(t *testing.T) {
	y, metrics := newYard(t, 2), NewMetrics()
	y.rig.executor.Metrics = metrics.Of(kind)
	givenUp := metrics.pulls.WithLabelValues("StatefulSet.apps.kruise.io", resultGivenUp)
	y.workload.Target.Pull.Timeout, y.workload.MaxUnavailable = time.Hour, 2
	y.taken()
	y.says("node-0", failed)
	y.says("node-1", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods"})
	y.taken()
	y.clock.Step(5 * time.Minute)
	y.says("node-0", failed) // made again; its pod is refused in the pass that gives node-1 up
	y.taken()
	y.Expect(testutil.ToFloat64(givenUp)).To(BeEquivalentTo(1))
	y.taken()
	y.Expect(testutil.ToFloat64(givenUp)).To(BeEquivalentTo(1))
}

// slowClock takes a quarter of a second for everything.
type slowClock struct {
	*clocktesting.FakePassiveClock
}

func (c *slowClock) Since(time.Time) time.Duration { return 250 * time.Millisecond }
