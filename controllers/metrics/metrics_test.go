// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

func TestRegister(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	m := New()
	g.Expect(m.Register(registry, Build{Version: "v1.2.3", Commit: "0123abc"})).To(Succeed())
	g.Expect(m.Register(registry, Build{})).To(MatchError(ContainSubstring("register metrics")), "twice")

	g.Expect(testutil.GatherAndCount(registry, "insitu_build_info")).To(Equal(1))
	problems, err := testutil.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

// TestCountersBeginAtZero: an increase from nothing to one is none to Prometheus.
func TestCountersBeginAtZero(t *testing.T) {
	g := NewWithT(t)
	registry, m := prometheus.NewPedanticRegistry(), New()
	g.Expect(m.Register(registry, Build{})).To(Succeed())
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		m.Rollouts.Of(appsv1.SchemeGroupVersion.WithKind(kind))
		m.Moves.Of(appsv1.SchemeGroupVersion.WithKind(kind))
	}
	for _, kind := range []string{"StatefulSet", "CloneSet"} {
		m.Rollouts.Of(appsv1beta1.GroupVersion.WithKind(kind))
		m.Moves.Of(appsv1beta1.GroupVersion.WithKind(kind))
	}
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP insitu_pod_updates_total Pods that were changed in place, or deleted to be recreated, counted at the write. A pod that is recreated after it was changed counts as both.
# TYPE insitu_pod_updates_total counter
insitu_pod_updates_total{kind="CloneSet.apps.kruise.io",way="InPlace"} 0
insitu_pod_updates_total{kind="CloneSet.apps.kruise.io",way="Recreate"} 0
insitu_pod_updates_total{kind="DaemonSet.apps",way="InPlace"} 0
insitu_pod_updates_total{kind="DaemonSet.apps",way="Recreate"} 0
insitu_pod_updates_total{kind="Deployment.apps",way="InPlace"} 0
insitu_pod_updates_total{kind="Deployment.apps",way="Recreate"} 0
insitu_pod_updates_total{kind="StatefulSet.apps",way="InPlace"} 0
insitu_pod_updates_total{kind="StatefulSet.apps",way="Recreate"} 0
insitu_pod_updates_total{kind="StatefulSet.apps.kruise.io",way="InPlace"} 0
insitu_pod_updates_total{kind="StatefulSet.apps.kruise.io",way="Recreate"} 0
`), "insitu_pod_updates_total")).To(Succeed())
	for name, count := range map[string]int{
		"insitu_resizes_total": 5 * 5, "insitu_claim_changes_total": 2 * 3, "insitu_claim_recreations_total": 4,
	} {
		g.Expect(testutil.GatherAndCount(registry, name)).To(Equal(count), name)
	}
}

// TestNothingIsMeasuredByDefault: reconcilers work without metrics.
func TestNothingIsMeasuredByDefault(t *testing.T) {
	none := Metrics{}
	kind := none.Rollouts.Of(appsv1beta1.GroupVersion.WithKind("StatefulSet"))
	NewWithT(t).Expect(kind).To(BeNil())
	kind.Report(types.NamespacedName{}, workload.Rollout{}, time.Time{})
	kind.Forget(types.NamespacedName{})
	kind.Released("UpdatedInPlace")
	none.Moves.Of(appsv1beta1.GroupVersion.WithKind("StatefulSet"))
}
