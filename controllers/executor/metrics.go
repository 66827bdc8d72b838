// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/insitu-dev/insitu/inplace"
)

// Values of the label way.
const (
	wayInPlace  = "InPlace"
	wayRecreate = "Recreate"
)

// Values of the label result.
const (
	resultPulled  = "Pulled"
	resultFailed  = "Failed"
	resultGivenUp = "GivenUp"
)

// Values of the label outcome.
const (
	outcomeDone   = "Done"
	outcomeFailed = "Failed"
)

// planBuckets are from what a plan for a few pods takes to what one for many thousands
// does.
var planBuckets = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}

// pullBuckets are from what a small image of a near registry takes to what a large one of a slow
// registry does.
var pullBuckets = []float64{1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1200}

// Metrics count what executors do to pods. They are safe for concurrent use.
type Metrics struct {
	updates  *prometheus.CounterVec
	planning *prometheus.HistogramVec
	pulls    *prometheus.CounterVec
	pulling  *prometheus.HistogramVec
	requests *prometheus.CounterVec
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	m := &Metrics{
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_pod_updates_total",
			Help: "Pods that were changed in place, or deleted to be recreated, counted at the write. A pod that is recreated after it was changed counts as both.",
		}, []string{"kind", "way"}),
		planning: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "insitu_plan_duration_seconds", Buckets: planBuckets,
			Help: "How long it took to decide on the next steps of all pods of a workload.",
		}, []string{"kind"}),
		pulls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_image_pulls_total",
			Help: "Pulls of images onto nodes, before updates or for an ImagePullJob, by result: the images are there, the kubelet began to fail (for a job: backoffLimit times, or for too long), or the update goes on without them.",
		}, []string{"kind", "result"}),
		pulling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "insitu_image_pull_duration_seconds", Buckets: pullBuckets,
			Help: "Time until a node has the images, from the first attempt to create the pod that pulls them; for an ImagePullJob, from the creation of the pod that pulled them.",
		}, []string{"kind"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_container_recreate_requests_total",
			Help: "Complete ContainerRecreateRequests, by whether all their containers were restarted.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{outcomeDone, outcomeFailed} {
		m.requests.WithLabelValues(outcome)
	}
	return m
}

// Collectors returns what is to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.updates, m.planning, m.pulls, m.pulling, m.requests}
}

// CountRequest counts a ContainerRecreateRequest that is complete.
func (m *Metrics) CountRequest(isDone bool) {
	switch {
	case m == nil:
	case isDone:
		m.requests.WithLabelValues(outcomeDone).Inc()
	default:
		m.requests.WithLabelValues(outcomeFailed).Inc()
	}
}

// Of returns the metrics of one kind; nil of nil.
func (m *Metrics) Of(kind schema.GroupVersionKind) *KindMetrics {
	if m == nil {
		return nil
	}
	name := kind.GroupKind().String()
	return &KindMetrics{
		PullMetrics: *m.PullsOf(kind),
		inPlace:     m.updates.WithLabelValues(name, wayInPlace),
		recreated:   m.updates.WithLabelValues(name, wayRecreate),
		planning:    m.planning.WithLabelValues(name),
		givenUp:     m.pulls.WithLabelValues(name, resultGivenUp),
	}
}

// PullsOf returns the metrics of what is pulled for one kind; nil of nil.
func (m *Metrics) PullsOf(kind schema.GroupVersionKind) *PullMetrics {
	if m == nil {
		return nil
	}
	name := kind.GroupKind().String()
	return &PullMetrics{
		pulled:  m.pulls.WithLabelValues(name, resultPulled),
		failed:  m.pulls.WithLabelValues(name, resultFailed),
		pulling: m.pulling.WithLabelValues(name),
	}
}

// KindMetrics count what is done to the pods of workloads of one kind.
type KindMetrics struct {
	PullMetrics
	inPlace, recreated, givenUp prometheus.Counter
	planning                    prometheus.Observer
}

// PullMetrics count what is pulled for objects of one kind.
type PullMetrics struct {
	pulled, failed prometheus.Counter
	pulling        prometheus.Observer
}

// Pulled counts a pull that took so long.
func (m *PullMetrics) Pulled(after time.Duration) {
	if m != nil {
		m.pulled.Inc()
		m.pulling.Observe(after.Seconds())
	}
}

// Failed counts pulls that failed.
func (m *PullMetrics) Failed(number int) {
	if m != nil {
		m.failed.Add(float64(number))
	}
}

// makePlan makes a plan, and measures how long that takes.
func (e *Executor) makePlan(w inplace.Workload, now time.Time) inplace.Plan {
	if e.Metrics == nil {
		return inplace.MakePlan(w, now)
	}
	began := e.clock.Now()
	plan := inplace.MakePlan(w, now)
	e.Metrics.planning.Observe(e.clock.Since(began).Seconds())
	return plan
}

// countPull counts what has come of a pull since it was as before.
func (e *Executor) countPull(before, after pullKnowledge, now time.Time) {
	switch {
	case e.Metrics == nil:
	case after.proved && !before.proved:
		e.Metrics.Pulled(now.Sub(after.since))
	case after.gaveUp && !before.gaveUp:
		e.Metrics.givenUp.Inc()
	case after.state == inplace.PullFailed && before.state != inplace.PullFailed:
		e.Metrics.Failed(1)
	}
}

// count counts a move to a revision that was carried out.
func (e *Executor) count(revision string, move inplace.Move) {
	step := move.Step
	isAtRevision := inplace.RevisionOf(move.Pod) == revision
	switch {
	case e.Metrics == nil:
	case step.Action == inplace.Patch && !isAtRevision, step.Action == inplace.Resize && step.Record != nil && !isAtRevision:
		e.Metrics.inPlace.Inc()
	case step.Action != inplace.Recreate, step.Reason == inplace.ReasonSpecifiedDelete, step.Reason == inplace.ReasonEnded:
	case !isAtRevision, step.Evict, len(step.Claims) > 0, step.Reason == inplace.ReasonClaimTemplatesChanged:
		e.Metrics.recreated.Inc()
	}
}
