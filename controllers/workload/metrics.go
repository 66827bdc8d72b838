// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// Values of the label outcome.
const (
	outcomeDone       = "Done"
	outcomeDeferred   = "Deferred"
	outcomeInfeasible = "Infeasible"
	outcomeError      = "Error"
	outcomeDenied     = "Denied"
	outcomeBlocked    = "Blocked"
	outcomeRefused    = "Refused"
)

var (
	workloadLabels = []string{"kind", "namespace", "name"}

	podsDesc = prometheus.NewDesc("insitu_rollout_pods",
		"Pods of a workload that is not at rest, by the step that they are at.",
		append(workloadLabels, "state"), nil)
	blockersDesc = prometheus.NewDesc("insitu_rollout_blockers",
		"Pods and claims of a workload that wait, or cannot go on, by the reason.",
		append(workloadLabels, "reason"), nil)
	stalledDesc = prometheus.NewDesc("insitu_rollout_stalled",
		"1 for a workload that needs a user, by the reason.",
		append(workloadLabels, "reason"), nil)
	progressDesc = prometheus.NewDesc("insitu_rollout_progress_timestamp_seconds",
		"When a pod of a workload that is not at rest last came nearer to its revision, in Unix time.",
		workloadLabels, nil)
	notHeldDesc = prometheus.NewDesc("insitu_native_not_held",
		"1 for a namespace in which a change of an opted-in workload of Kubernetes would not be held: Kubernetes would recreate its pods.",
		[]string{"kind", "namespace"}, nil)
)

// stepBuckets are from a second, which a write and the event that it causes take, to a
// working day.
var stepBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 8 * 3600}

// Metrics tells of the rollouts of all workloads. It is safe for concurrent use.
//
// There are series of a workload only while it is not at rest, so that their number
// depends on what is going on and not on how many workloads there are. All that is
// remembered is when something was seen first: after a restart of the manager,
// those times start again.
type Metrics struct {
	steps    *prometheus.HistogramVec
	resizes  *prometheus.CounterVec
	claims   *prometheus.CounterVec
	released *prometheus.CounterVec

	mutex    sync.Mutex
	rollouts map[rolloutKey]*rolloutMemory
	// notHeld are namespaces, by kind.
	notHeld map[string][]string
	// ended: this manager is not the leader any more.
	ended bool
}

type rolloutKey struct {
	kind string
	types.NamespacedName
}

// NewMetrics returns metrics that tell of nothing yet.
func NewMetrics() *Metrics {
	return &Metrics{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "insitu_pod_step_duration_seconds", Buckets: stepBuckets,
			Help: "How long pods were at a step of their update, from when this manager first saw the step.",
		}, []string{"kind", "state"}),
		resizes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_resizes_total",
			Help: "Resizes of pods in place, by outcome, counted each time that a pod gets one.",
		}, []string{"kind", "outcome"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_claim_changes_total",
			Help: "Changes of claims, by outcome, counted each time that a claim gets one: it is what its template says, is blocked, or the API server refuses the change.",
		}, []string{"kind", "outcome"}),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_native_updates_total",
			Help: "Updates of workloads of Kubernetes that Insitu has ended: in place, released so that Kubernetes recreates the pods, or no longer held.",
		}, []string{"kind", "outcome"}),
		rollouts: map[rolloutKey]*rolloutMemory{}, notHeld: map[string][]string{},
	}
}

// Collectors returns what is to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m, m.steps, m.resizes, m.claims, m.released}
}

// Start keeps the series of workloads until ctx ends: the manager calls it while it is
// the leader.
func (m *Metrics) Start(ctx context.Context) error {
	<-ctx.Done()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.ended = true
	clear(m.rollouts)
	clear(m.notHeld)
	return nil
}

// Describe describes the series of workloads.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{podsDesc, blockersDesc, stalledDesc, progressDesc, notHeldDesc} {
		descs <- desc
	}
}

// NotHeld tells in which namespaces a change of an opted-in workload of a kind would not be
// held.
func (m *Metrics) NotHeld(kind schema.GroupVersionKind, namespaces []string) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.ended {
		m.notHeld[kind.GroupKind().String()] = namespaces
	}
}

// Collect returns the series of workloads that are not at rest, and of namespaces in which
// none would be held.
func (m *Metrics) Collect(series chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for kind, namespaces := range m.notHeld {
		for _, namespace := range namespaces {
			series <- prometheus.MustNewConstMetric(notHeldDesc, prometheus.GaugeValue, 1, kind, namespace)
		}
	}
	for key, known := range m.rollouts {
		add := func(desc *prometheus.Desc, value float64, labels ...string) {
			labels = append([]string{key.kind, key.Namespace, key.Name}, labels...)
			series <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		}
		for state, count := range known.states {
			add(podsDesc, float64(count), string(state))
		}
		for reason, count := range known.blockers {
			add(blockersDesc, float64(count), reason)
		}
		if known.stalled != "" {
			add(stalledDesc, 1, known.stalled)
		}
		add(progressDesc, float64(known.progressed.UnixMilli())/1000)
	}
}

// Of returns the metrics of one kind; nil of nil.
func (m *Metrics) Of(kind schema.GroupVersionKind) *KindMetrics {
	if m == nil {
		return nil
	}
	k := &KindMetrics{all: m, kind: kind.GroupKind().String()}
	for _, outcome := range []string{outcomeDone, outcomeDeferred, outcomeInfeasible, outcomeError, outcomeDenied} {
		m.resizes.WithLabelValues(k.kind, outcome)
	}
	if kind.Group == appsv1beta1.GroupVersion.Group {
		for _, outcome := range []string{outcomeDone, outcomeBlocked, outcomeRefused} {
			m.claims.WithLabelValues(k.kind, outcome)
		}
	}
	return k
}

// KindMetrics tells of the rollouts of workloads of one kind. One that is nil tells
// nothing.
type KindMetrics struct {
	all  *Metrics
	kind string
}

// Report tells what a reconciliation found and decided, as it is reported in the status.
func (k *KindMetrics) Report(name types.NamespacedName, r Rollout, now time.Time) {
	if k == nil {
		return
	}
	k.all.mutex.Lock()
	defer k.all.mutex.Unlock()
	key := rolloutKey{k.kind, name}
	known, atRest := k.all.rollouts[key], r.isAtRest()
	if known == nil && (atRest || k.all.ended || r.tellsNothing()) {
		return
	}
	if known == nil {
		known = newRolloutMemory()
		k.all.rollouts[key] = known
	}
	known.learn(k, r, now)
	if atRest {
		delete(k.all.rollouts, key)
	}
}

// Forget forgets a workload that is gone, or that is not ours to move any more.
func (k *KindMetrics) Forget(name types.NamespacedName) {
	if k == nil {
		return
	}
	k.all.mutex.Lock()
	defer k.all.mutex.Unlock()
	delete(k.all.rollouts, rolloutKey{k.kind, name})
}

// ForgetIfGone forgets a workload that could not be read because it does not exist.
func (k *KindMetrics) ForgetIfGone(name types.NamespacedName, err error) {
	if apierrors.IsNotFound(err) {
		k.Forget(name)
	}
}

// Released counts an update of a workload of Kubernetes that is over for us.
func (k *KindMetrics) Released(outcome string) {
	if k != nil {
		k.all.released.WithLabelValues(k.kind, outcome).Inc()
	}
}

// MayRelease begins to count the outcomes that Released may be told of.
func (k *KindMetrics) MayRelease(outcomes ...string) {
	if k == nil {
		return
	}
	for _, outcome := range outcomes {
		k.all.released.WithLabelValues(k.kind, outcome)
	}
}

func (k *KindMetrics) observeStep(state inplace.State, duration time.Duration) {
	k.all.steps.WithLabelValues(k.kind, string(state)).Observe(max(duration, 0).Seconds())
}
