// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// Values of the label outcome.
const (
	// outcomeDone: the claim was recreated, and its pod is ready on it.
	outcomeDone = "Done"
	// outcomeUndone: it has an earlier volume back, as a user asked.
	outcomeUndone = "Undone"
	// outcomeFailed: it keeps, or gets back, the volume that it had.
	outcomeFailed = "Failed"
	// outcomeAbandoned: it was not to be recreated any more.
	outcomeAbandoned = "Abandoned"
)

// Metrics count claims that were recreated, and what is kept of them. They are safe for
// concurrent use.
type Metrics struct {
	recreations                           *prometheus.CounterVec
	volumes, capacity, snapshots, overdue *prometheus.GaugeVec
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	m := &Metrics{recreations: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "insitu_claim_recreations_total",
		Help: "Recreations of claims, by outcome: a ready pod uses the new claim, a user got an earlier volume back, it failed, or it was no longer wanted.",
	}, []string{"outcome"})}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"kind", "namespace", "name"})
	}
	m.volumes = gauge("insitu_kept_volumes", "PersistentVolumes that are kept of recreated claims.")
	m.capacity = gauge("insitu_kept_volumes_capacity_bytes", "What these volumes hold, by their capacities.")
	m.snapshots = gauge("insitu_kept_snapshots", "VolumeSnapshots that are kept of recreated claims.")
	m.overdue = gauge("insitu_kept_overdue", "Volumes and snapshots that are kept longer than holdSeconds, although recreate says Delete.")
	for _, outcome := range []string{outcomeDone, outcomeUndone, outcomeFailed, outcomeAbandoned} {
		m.recreations.WithLabelValues(outcome)
	}
	return m
}

// Collectors returns what is to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.recreations, m.volumes, m.capacity, m.snapshots, m.overdue}
}

// Keep tells what is kept of the claims of a workload, as its status does. There are series
// of workloads only of which something is kept.
func (m *Metrics) Keep(kind string, name types.NamespacedName, claims []appsv1beta1.VolumeClaimStatus) {
	if m == nil {
		return
	}
	sum := appsv1beta1.SumKept(claims)
	if sum == nil {
		m.Forget(kind, name)
		return
	}
	labels := []string{kind, name.Namespace, name.Name}
	m.volumes.WithLabelValues(labels...).Set(float64(sum.Volumes))
	m.capacity.WithLabelValues(labels...).Set(sum.Capacity.AsApproximateFloat64())
	m.snapshots.WithLabelValues(labels...).Set(float64(sum.Snapshots))
	m.overdue.WithLabelValues(labels...).Set(float64(sum.Overdue))
}

// Forget ends the series of a workload.
func (m *Metrics) Forget(kind string, name types.NamespacedName) {
	if m == nil {
		return
	}
	for _, vec := range []*prometheus.GaugeVec{m.volumes, m.capacity, m.snapshots, m.overdue} {
		vec.DeleteLabelValues(kind, name.Namespace, name.Name)
	}
}

// count counts a step that was written, if it is the one by which it is known what
// becomes of a claim. Each is written once.
func (m *Metrics) count(step recreate.Step) {
	if outcome := outcomeOf(step); m != nil && outcome != "" {
		m.recreations.WithLabelValues(outcome).Inc()
	}
}

func outcomeOf(step recreate.Step) string {
	switch {
	case step.Failed && step.Reason == recreate.ReasonRecreateUndone:
		return outcomeUndone
	case step.Failed:
		return outcomeFailed
	case step.Action == recreate.Note && step.Record.Recreate != nil && step.Record.Recreate.Abandoned != "":
		return outcomeAbandoned
	case step.Action != recreate.HoldVolume || step.State.ProvedTimestamp == nil:
		return ""
	case step.State.Recreate.Source == appsv1beta1.VolumeRecreateSource:
		return outcomeUndone
	default:
		return outcomeDone
	}
}
