// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

func TestWhatBecomesOfClaimsIsCounted(t *testing.T) {
	held := func(source appsv1beta1.VolumeClaimRecreateSource, proved bool) *appsv1beta1.HeldVolumeState {
		state := &appsv1beta1.HeldVolumeState{Recreate: recreate.Attempt{Source: source}}
		if proved {
			state.ProvedTimestamp = ptr.To(metav1.Now())
		}
		return state
	}
	for name, tc := range map[string]struct {
		step    recreate.Step
		outcome string
	}{
		"its volume is held":          {recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.SnapshotRecreateSource, false)}, ""},
		"it is created":               {recreate.Step{Action: recreate.CreateClaim}, ""},
		"its pod is ready":            {recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.SnapshotRecreateSource, true)}, outcomeDone},
		"its pod is ready on nothing": {recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.EmptyRecreateSource, true)}, outcomeDone},
		"it has an earlier volume":    {recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.VolumeRecreateSource, true)}, outcomeUndone},
		"an undo takes its volume back": {
			recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.VolumeRecreateSource, false), Failed: true, Reason: recreate.ReasonRecreateUndone}, outcomeUndone,
		},
		"it gets its volume back": {
			recreate.Step{Action: recreate.HoldVolume, State: held(appsv1beta1.VolumeRecreateSource, false), Failed: true, Reason: recreate.ReasonRecreateTimedOut}, outcomeFailed,
		},
		"it fails before its pod stops": {
			recreate.Step{Action: recreate.Note, Record: volumes.Record{Recreate: &recreate.Attempt{Abandoned: "late"}}, Failed: true}, outcomeFailed,
		},
		"it is not wanted any more": {recreate.Step{Action: recreate.Note, Record: volumes.Record{Recreate: &recreate.Attempt{Abandoned: "reverted"}}}, outcomeAbandoned},
		"it has begun":              {recreate.Step{Action: recreate.Note, Record: volumes.Record{Recreate: &recreate.Attempt{}}}, ""},
		"nothing is left of it":     {recreate.Step{Action: recreate.Note}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), NewMetrics()
			m.count(tc.step)
			for _, outcome := range []string{outcomeDone, outcomeUndone, outcomeFailed, outcomeAbandoned} {
				want := 0.
				if outcome == tc.outcome {
					want = 1
				}
				g.Expect(testutil.ToFloat64(m.recreations.WithLabelValues(outcome))).To(Equal(want), outcome)
			}
			(*Metrics)(nil).count(tc.step)
		})
	}
}

// TestWhatIsKeptIsMeasured: there are series of workloads only that keep something.
func TestWhatIsKeptIsMeasured(t *testing.T) {
	g, m := NewWithT(t), NewMetrics()
	name, other := types.NamespacedName{Namespace: "shop", Name: "db"}, types.NamespacedName{Namespace: "shop", Name: "cache"}
	kept := func(volumes, snapshots, overdue int32, capacity string) appsv1beta1.VolumeClaimStatus {
		return appsv1beta1.VolumeClaimStatus{Kept: &appsv1beta1.VolumeClaimKeptStatus{
			Volumes: volumes, Snapshots: snapshots, Overdue: overdue, Capacity: ptr.To(resource.MustParse(capacity)),
		}}
	}
	const kind = "StatefulSet.apps.kruise.io"
	m.Keep(kind, other, []appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "data"}})
	m.Keep(kind, name, []appsv1beta1.VolumeClaimStatus{kept(2, 1, 1, "1Gi"), {}, kept(1, 0, 0, "512Mi")})
	for vec, want := range map[*prometheus.GaugeVec]float64{m.volumes: 3, m.snapshots: 1, m.overdue: 1, m.capacity: 1536 << 20} {
		g.Expect(testutil.CollectAndCount(vec)).To(Equal(1))
		g.Expect(testutil.ToFloat64(vec.WithLabelValues(kind, "shop", "db"))).To(Equal(want))
	}
	m.Keep(kind, name, []appsv1beta1.VolumeClaimStatus{{}})
	for _, vec := range []*prometheus.GaugeVec{m.volumes, m.snapshots, m.overdue, m.capacity} {
		g.Expect(testutil.CollectAndCount(vec)).To(BeZero())
	}
	m.Keep(kind, name, []appsv1beta1.VolumeClaimStatus{kept(1, 1, 0, "1Gi")})
	m.Forget(kind, name)
	g.Expect(testutil.CollectAndCount(m.volumes)).To(BeZero())
	(*Metrics)(nil).Keep(kind, name, nil)
	(*Metrics)(nil).Forget(kind, name)
}
