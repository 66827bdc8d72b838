// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// follower is a workload whose reports are measured.
type follower struct {
	*WithT
	metrics *Metrics
	kind    *KindMetrics
	name    types.NamespacedName
	now     time.Time
}

func newFollower(t *testing.T) *follower {
	t.Helper()
	m := NewMetrics()
	return &follower{
		WithT: NewWithT(t), metrics: m, kind: m.Of(appsv1beta1.GroupVersion.WithKind("StatefulSet")),
		name: types.NamespacedName{Namespace: "shop", Name: "web"}, now: time.Unix(1_800_000_000, 0),
	}
}

// report reports pods a second later.
func (f *follower) report(pods ...inplace.PodState) {
	f.reportAll(Rollout{Plan: inplace.Plan{Pods: pods}})
}

func (f *follower) reportAll(r Rollout) {
	f.now = f.now.Add(time.Second)
	r.Planned = true
	f.kind.Report(f.name, r, f.now)
}

// series returns the series of workloads, without their name.
func (f *follower) series() map[string]float64 {
	return f.seriesOf(f.metrics)
}

func (f *follower) seriesOf(collector prometheus.Collector) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	f.Expect(registry.Register(collector)).To(Succeed())
	families, err := registry.Gather()
	f.Expect(err).NotTo(HaveOccurred())
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			name := family.GetName()
			for _, label := range metric.Label {
				switch label.GetName() {
				case "kind":
					f.Expect(label.GetValue()).To(Equal("StatefulSet.apps.kruise.io"))
				case "namespace":
					f.Expect(label.GetValue()).To(Equal("shop"))
				case "name":
					f.Expect(label.GetValue()).To(Equal("web"))
				default:
					name += " " + label.GetValue()
				}
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			if h := metric.GetHistogram(); h != nil {
				series[name+" count"], value = float64(h.GetSampleCount()), h.GetSampleSum()
			}
			series[name] = value
		}
	}
	return series
}

func at(name string, state inplace.State, changes ...func(*inplace.PodState)) inplace.PodState {
	pod := inplace.PodState{
		Pod:  &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}},
		Step: inplace.Step{State: state},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func because(reason string) func(*inplace.PodState) {
	return func(pod *inplace.PodState) { pod.Step.Reason = reason }
}

func TestAWorkloadAtRestHasNoSeries(t *testing.T) {
	f := newFollower(t)
	f.report(at("a", inplace.Settled))
	f.Expect(f.series()).To(BeEmpty())

	f.report(at("a", inplace.Draining), at("b", inplace.Waiting))
	f.Expect(f.series()).NotTo(BeEmpty())
	f.report(at("a", inplace.Settled), at("b", inplace.Settled))
	f.Expect(f.series()).To(BeEmpty())
	f.Expect(f.metrics.rollouts).To(BeEmpty(), "nothing is remembered")
}

func TestPodsAndBlockersAreCounted(t *testing.T) {
	f := newFollower(t)
	stuck := at("c", inplace.Stuck)
	f.reportAll(Rollout{
		Plan: inplace.Plan{
			Pods: []inplace.PodState{at("a", inplace.Draining), at("b", inplace.Draining), at("d", inplace.Draining), stuck},
			Blockers: []inplace.Blocker{
				{Pod: stuck.Pod, State: inplace.Stuck, Reason: "ImagePullBackOff"},
				{Pod: stuck.Pod, Reason: "a runtime's own words"},
				{Pod: at("a", "").Pod, State: inplace.Waiting, Reason: inplace.ReasonBudget},
				{Pod: at("b", "").Pod, State: inplace.Waiting, Reason: inplace.ReasonBudget},
				{Pod: at("d", "").Pod, Claim: &corev1.PersistentVolumeClaim{}, State: inplace.Stuck, Reason: volumes.ReasonClaimOverdue},
			},
		},
		Failed: map[string]error{"c": errors.New("refused")}, Stalled: "ImagePullBackOff",
	})
	f.Expect(f.series()).To(Equal(map[string]float64{
		"insitu_rollout_pods Waiting": 2, "insitu_rollout_pods Draining": 1, "insitu_rollout_pods Stuck": 1,
		"insitu_rollout_blockers ClaimOverdue":     1,
		"insitu_rollout_blockers ImagePullBackOff": 1, "insitu_rollout_blockers Other": 1, "insitu_rollout_blockers MaxUnavailable": 2,
		"insitu_rollout_blockers FailedUpdatePodInPlace": 1,
		"insitu_rollout_stalled ImagePullBackOff":        1,
		"insitu_rollout_progress_timestamp_seconds":      float64(f.now.Unix()),
	}))
	f.report(at("a", inplace.Draining))
	f.Expect(f.series()).To(HaveLen(2), "what is not so any more is not told")
}

func TestSeriesGoWithTheirWorkload(t *testing.T) {
	f := newFollower(t)
	f.report(at("a", inplace.Draining))
	f.kind.ForgetIfGone(f.name, errors.New("timeout"))
	f.Expect(f.series()).NotTo(BeEmpty())
	f.kind.Forget(f.name)
	f.Expect(f.series()).To(BeEmpty())

	f.report(at("a", inplace.Draining))
	f.reportAll(Rollout{Plan: inplace.Plan{Pods: []inplace.PodState{at("a", inplace.Verifying)}}, IsOver: true})
	f.Expect(f.series()).To(BeEmpty())
}

func TestAManagerThatDoesNotLeadTellsOfNoWorkload(t *testing.T) {
	f := newFollower(t)
	f.report(at("a", inplace.Draining))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f.Expect(f.metrics.Start(ctx)).To(Succeed())
	f.Expect(f.series()).To(BeEmpty())
	f.report(at("a", inplace.Draining))
	f.Expect(f.series()).To(BeEmpty(), "of a reconciliation that ends after that")
}

func TestAFailureThatPassesChangesNothing(t *testing.T) {
	f := newFollower(t)
	f.kind.Report(f.name, Rollout{}, f.now)
	f.Expect(f.series()).To(BeEmpty())

	f.report(at("a", inplace.Draining))
	before := f.series()
	f.kind.Report(f.name, Rollout{}, f.now.Add(time.Hour))
	f.Expect(f.series()).To(Equal(before))

	f.kind.Forget(f.name)
	f.kind.Report(f.name, Rollout{Stalled: appsv1beta1.ReasonInvalidSpec}, f.now)
	f.Expect(f.series()).To(Equal(map[string]float64{
		"insitu_rollout_stalled InvalidSpec": 1, "insitu_rollout_progress_timestamp_seconds": float64(f.now.Unix()),
	}))
}

// TestProgress: a pod that comes nearer than it ever was is progress, and one that goes
// back and forth is none.
func TestProgress(t *testing.T) {
	f := newFollower(t)
	progressed := func() bool {
		return f.series()["insitu_rollout_progress_timestamp_seconds"] == float64(f.now.Unix())
	}
	for i, step := range []struct {
		state inplace.State
		want  bool
	}{
		{inplace.Waiting, true}, {inplace.Waiting, false}, {inplace.Draining, true}, {inplace.Draining, false}, {inplace.Restarting, true},
		{inplace.Verifying, true}, {inplace.Stuck, false}, {inplace.Restarting, false}, {inplace.Verifying, false},
	} {
		f.report(at("a", step.state), at("b", inplace.Waiting))
		f.Expect(progressed()).To(Equal(step.want), "%d: %s", i, step.state)
	}
	f.report(at("a", inplace.Settled), at("b", inplace.Waiting))
	f.Expect(progressed()).To(BeTrue())
	f.reportAll(Rollout{Revision: "other", Plan: inplace.Plan{Pods: []inplace.PodState{at("a", inplace.Waiting), at("b", inplace.Waiting)}}})
	f.Expect(progressed()).To(BeTrue(), "another revision starts again")
	f.reportAll(Rollout{Revision: "other", Plan: inplace.Plan{Pods: []inplace.PodState{at("a", inplace.Draining), at("b", inplace.Waiting)}}})
	f.Expect(progressed()).To(BeTrue(), "towards that, it was never as far")
	f.reportAll(Rollout{Revision: "other", Plan: inplace.Plan{Pods: []inplace.PodState{at("a2", inplace.Verifying), at("b", inplace.Waiting)}}})
	f.Expect(progressed()).To(BeTrue(), "it was recreated")
}

// TestProgressBeforeTheManager: a manager that was started a moment ago does not take
// that for progress.
func TestProgressBeforeTheManager(t *testing.T) {
	f := newFollower(t)
	began := f.now.Add(-time.Hour)
	pod := at("a", inplace.Stuck)
	report := func() float64 {
		f.kind.Forget(f.name)
		f.reportAll(Rollout{Since: began, Plan: inplace.Plan{Pods: []inplace.PodState{pod}}})
		return f.series()["insitu_rollout_progress_timestamp_seconds"]
	}
	f.Expect(report()).To(BeEquivalentTo(began.Unix()))

	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(time.Minute))}
	pod.Pod.Status.Conditions = []corev1.PodCondition{ready}
	f.Expect(report()).To(BeEquivalentTo(began.Add(time.Minute).Unix()))
	pod.Pod.CreationTimestamp = metav1.NewTime(began.Add(2 * time.Minute))
	f.Expect(report()).To(BeEquivalentTo(began.Add(2 * time.Minute).Unix()))
	pod.Pod.CreationTimestamp = metav1.NewTime(f.now.Add(time.Hour))
	f.Expect(report()).To(BeEquivalentTo(f.now.Unix()), "by a clock that is wrong")
}

func TestStepDurations(t *testing.T) {
	f := newFollower(t)
	f.report(at("a", inplace.Waiting), at("b", inplace.Recreating), at("c", inplace.Waiting))
	f.report(at("a", inplace.Waiting), at("b", inplace.Recreating), at("c", inplace.Waiting))
	f.report(at("a", inplace.Draining), at("b", inplace.Recreating))
	f.report(at("a", inplace.Settled), at("b2", inplace.Verifying))
	f.report(at("a", inplace.Settled), at("b2", inplace.Settled))
	f.Expect(f.seriesOf(f.metrics.steps)).To(Equal(map[string]float64{
		"insitu_pod_step_duration_seconds Waiting": 2, "insitu_pod_step_duration_seconds Waiting count": 1,
		"insitu_pod_step_duration_seconds Draining": 1, "insitu_pod_step_duration_seconds Draining count": 1,
		"insitu_pod_step_duration_seconds Recreating": 3, "insitu_pod_step_duration_seconds Recreating count": 1,
		"insitu_pod_step_duration_seconds Verifying": 1, "insitu_pod_step_duration_seconds Verifying count": 1,
	}), "a pod that was deleted while it waited came to no other step")
}

func TestResizeOutcomes(t *testing.T) {
	updated := func(pod *inplace.PodState) { pod.Updated = true }
	resize := at("a", inplace.Resizing)
	resize.Step.Action = inplace.Resize
	write := func(failed map[string]error) Rollout {
		return Rollout{Plan: inplace.Plan{Pods: []inplace.PodState{resize}, Moves: []inplace.Move{{Pod: resize.Pod, Step: resize.Step}}}, Failed: failed}
	}
	wait := func(reason string) Rollout {
		return Rollout{Plan: inplace.Plan{Pods: []inplace.PodState{at("a", inplace.Resizing, because(reason))}}}
	}
	done := Rollout{Plan: inplace.Plan{Pods: []inplace.PodState{at("a", inplace.Settled, updated)}}}
	for name, tc := range map[string]struct {
		reports []Rollout
		want    map[string]float64
	}{
		"at once":              {[]Rollout{write(nil), done}, map[string]float64{"Done": 1}},
		"after a while":        {[]Rollout{write(nil), wait(inplace.ReasonResizeInProgress), wait(inplace.ReasonResizeInProgress), done}, map[string]float64{"Done": 1}},
		"that was not written": {[]Rollout{wait(""), done}, nil},
		"that failed":          {[]Rollout{write(map[string]error{"a": errors.New("refused")}), done}, nil},
		"denied":               {[]Rollout{wait(inplace.ReasonResizeDenied), wait(inplace.ReasonResizeDenied), done}, map[string]float64{"Denied": 1}},
		"deferred, and then infeasible": {
			[]Rollout{write(nil), wait(inplace.ReasonResizeDeferred), wait(inplace.ReasonResizeDeferred), wait(inplace.ReasonResizeInfeasible)},
			map[string]float64{"Deferred": 1, "Infeasible": 1},
		},
		"deferred, and done":           {[]Rollout{wait(inplace.ReasonResizeDeferred), done}, map[string]float64{"Deferred": 1, "Done": 1}},
		"with an error, and once more": {[]Rollout{wait(inplace.ReasonResizeError), wait(inplace.ReasonResizeInProgress), wait(inplace.ReasonResizeError)}, map[string]float64{"Error": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollower(t)
			for _, report := range tc.reports {
				f.reportAll(report)
			}
			f.Expect(f.outcomes(f.metrics.resizes)).To(Equal(nonNil(tc.want)))
		})
	}
}

func TestClaimOutcomes(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-a", UID: "1"}}
	step := func(state volumes.State, changes ...func(*volumes.Step)) Rollout {
		s := volumes.Step{State: state, Claim: claim}
		for _, change := range changes {
			change(&s)
		}
		return Rollout{Incomplete: true, Claims: map[string]volumes.Claims{"a": {s, {State: volumes.Waiting}}}}
	}
	gold := func(s *volumes.Step) { s.Patch = volumes.Patch{AttributesClass: "gold"} }
	written := step(volumes.Changing, gold)
	pod := at("a", inplace.Waiting).Pod
	written.Plan.Moves = []inplace.Move{{Pod: pod, Step: inplace.Step{Action: inplace.ChangeClaims, Claims: written.Claims["a"][:1]}}}
	failing := written
	failing.Failed = map[string]error{"a": errors.New("no answer")}
	for name, tc := range map[string]struct {
		reports []Rollout
		want    map[string]float64
	}{
		"at once":                    {[]Rollout{written, step(volumes.Settled)}, map[string]float64{"Done": 1}},
		"after a while":              {[]Rollout{step(volumes.UnderWay), step(volumes.UnderWay), step(volumes.Settled), step(volumes.Settled)}, map[string]float64{"Done": 1}},
		"that waits for its turn":    {[]Rollout{step(volumes.Changing, gold), step(volumes.Settled)}, nil},
		"that was not written":       {[]Rollout{failing, step(volumes.Settled)}, nil},
		"of another client":          {[]Rollout{step(volumes.UnderWay, func(s *volumes.Step) { s.Foreign = true }), step(volumes.Settled)}, nil},
		"blocked, for two reasons":   {[]Rollout{step(volumes.Blocked), step(volumes.Blocked, func(s *volumes.Step) { s.Reason = volumes.ReasonClaimOverdue })}, map[string]float64{"Blocked": 1}},
		"blocked, fixed, blocked":    {[]Rollout{step(volumes.Blocked), step(volumes.UnderWay), step(volumes.Blocked)}, map[string]float64{"Blocked": 2}},
		"refused, while it is tried": {[]Rollout{step(volumes.Changing, func(s *volumes.Step) { s.Refused = "quota" }), step(volumes.Blocked, func(s *volumes.Step) { s.Reason = volumes.ReasonClaimRefused })}, map[string]float64{"Refused": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFollower(t)
			for _, report := range tc.reports {
				f.reportAll(report)
			}
			f.Expect(f.outcomes(f.metrics.claims)).To(Equal(nonNil(tc.want)))
		})
	}
}

// outcomes returns what was counted, by outcome.
func (f *follower) outcomes(collector prometheus.Collector) map[string]float64 {
	counts := map[string]float64{}
	for name, value := range f.seriesOf(collector) {
		if value > 0 {
			counts[name[strings.LastIndex(name, " ")+1:]] = value
		}
	}
	return counts
}

func nonNil(counts map[string]float64) map[string]float64 {
	if counts == nil {
		return map[string]float64{}
	}
	return counts
}

// TestSeriesAreBounded runs many workloads with all states and reasons that there are.
func TestSeriesAreBounded(t *testing.T) {
	f := newFollower(t)
	states := slices.Collect(maps.Keys(distance))
	words := reasons.UnsortedList()
	for n := range 500 {
		f.name.Name = fmt.Sprintf("web-%d", n)
		for i := range 40 {
			pod := at(f.name.Name+"-0", states[(n+i)%len(states)], because(words[(n+i)%len(words)]))
			f.reportAll(Rollout{
				Revision: strconv.Itoa(i / 10), Stalled: words[i%len(words)],
				Plan: inplace.Plan{Pods: []inplace.PodState{pod}, Blockers: []inplace.Blocker{
					{Pod: pod.Pod, State: pod.Step.State, Reason: words[i%len(words)]}, {Pod: pod.Pod, Reason: fmt.Sprintf("words of a runtime %d", n*i)},
				}},
			})
		}
		if n%100 != 0 {
			f.report(at("a", inplace.Settled))
		}
	}
	f.Expect(testutil.CollectAndCount(f.metrics)).To(BeNumerically("<=", 5*5), "5 workloads are not at rest")
	f.Expect(testutil.CollectAndCount(f.metrics.steps)).To(Equal(len(states)-1), "all but Settled")
	f.Expect(testutil.CollectAndCount(f.metrics.resizes)).To(Equal(5))
	f.Expect(testutil.CollectAndCount(f.metrics.claims)).To(Equal(3))
}

// TestReasonsAreThoseOfTheCode: a constant that is missing in the list would be told as
// another reason.
func TestReasonsAreThoseOfTheCode(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for _, folder := range []string{"../../inplace", "../../volumes", "../../volumes/recreate", "../../resize"} {
		for name, value := range constantsOf(t, folder, func(name, kind string) bool {
			return strings.HasPrefix(name, "Reason") || kind == "RefusalReason"
		}) {
			found++
			g.Expect(reasons.Has(value)).To(BeTrue(), "%s = %q of %s", name, value, folder)
		}
	}
	g.Expect(found).To(BeNumerically(">", 70))
	g.Expect(reasonLabel("words of a runtime")).To(Equal("Other"))
	g.Expect(reasonLabel("")).To(BeEmpty())
}

// TestStatesAreThoseOfTheCode: a state without a place would never be progress.
func TestStatesAreThoseOfTheCode(t *testing.T) {
	g := NewWithT(t)
	states := constantsOf(t, "../../inplace", func(_, kind string) bool { return kind == "State" })
	g.Expect(states).To(HaveLen(len(distance)))
	for _, state := range states {
		g.Expect(distance).To(HaveKey(inplace.State(state)))
	}
}

// constantsOf returns the texts among the constants of a package, by name.
func constantsOf(t *testing.T, folder string, wanted func(name, kind string) bool) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, _ := spec.Type.(*ast.Ident)
			if kind == nil {
				kind = &ast.Ident{}
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING && wanted(spec.Names[0].Name, kind.Name) {
				constants[spec.Names[0].Name], err = strconv.Unquote(text.Value)
			}
			return err == nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return constants
}
