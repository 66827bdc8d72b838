// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// A pod is available when it has been ready for longer than minReadySeconds;
// until then the plan says when to look again.
func TestMakePlanMinReadySeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		now     time.Time
		moves   []string
		recheck time.Time
	}{
		"just ready":      {after(1), []string{}, after(11)},
		"at the last":     {after(10), []string{}, after(11)},
		"long enough":     {after(11), []string{"MarkNotReady p0"}, time.Time{}},
		"a long time ago": {after(1000), []string{"MarkNotReady p0"}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1, updated("p1").Ready(true, patched), inService("p0"))
			w.MinReadySeconds = 10
			plan := MakePlan(w, tc.now)
			g.Expect(moves(plan)).To(Equal(tc.moves))
			g.Expect(plan.Recheck).To(BeTemporally("==", tc.recheck))
			g.Expect(plan.Pods[0].Available).To(Equal(tc.recheck.IsZero()))
		})
	}
}

// Without the gate and without a readiness probe, a container can be replaced
// so quickly that the Ready condition never moves. The pod's new container still
// has to prove itself for minReadySeconds.
func TestMakePlanMinReadySecondsOfAQuickRestart(t *testing.T) {
	g := NewWithT(t)
	quick := builders.Pod("p1", "b", latestImage).Record(record(entry(alpineImage))).Generation(2, 2).Status(newContainer())
	w := workload(t, 1, quick, builders.Pod("p0", "a", alpineImage))
	w.MinReadySeconds = 10
	w.Target.CannotDrain = unheeded

	plan := MakePlan(w, after(5))
	g.Expect(moves(plan)).To(BeEmpty())
	g.Expect(plan.Pods[0].Available).To(BeFalse())
	g.Expect(plan.Recheck).To(BeTemporally("==", after(14)), "the container was started after 3 s")
	g.Expect(moves(MakePlan(w, after(14)))).To(Equal([]string{"Patch p0"}))
}

func TestMakePlanRechecksAtTheNextMoment(t *testing.T) {
	g := NewWithT(t)
	// The grace period of p1 ends at 130 s, that of p0 at 120 s; both began later than the start.
	w := workload(t, 2,
		marked(inService("p1")).Condition(appsv1beta1.InPlaceUpdateReady, "False", after(100)),
		marked(inService("p0")).Condition(appsv1beta1.InPlaceUpdateReady, "False", after(90)),
	)
	w.Target.GracePeriod = 30 * time.Second
	plan := MakePlan(w, planned)
	g.Expect(blockers(plan)).To(Equal([]string{"p1 Grace GracePeriod", "p0 Grace GracePeriod"}))
	g.Expect(plan.Recheck).To(BeTemporally("==", after(120)))
}

// big is a workload that is too large to be listed by hand, with pods that came to
// their revision in place, so that each has a record to be judged by. A tenth is
// updated, one pod in a hundred restarts, one in a thousand is broken.
func big(t testing.TB, pods int) Workload {
	t.Helper()
	all := make([]*builders.PodBuilder, 0, pods)
	for i := range pods {
		name := fmt.Sprintf("p%d", i)
		switch {
		case i%1000 == 1:
			all = append(all, crashing(inService(name)))
		case i%100 == 2:
			all = append(all, inFlight(name))
		case i%10 == 3:
			all = append(all, updated(name))
		default:
			restarted := builders.RunningContainer("main", "main-2", alpineImage, after(3))
			earlier := entry("nginx:before")
			earlier.ContainerID += name // no two pods have the same
			all = append(all, inService(name).Record(record(earlier)).Status(restarted))
		}
	}
	return workload(t, pods/50, all...)
}

func TestMakePlanOfTenThousandPods(t *testing.T) {
	g := NewWithT(t)
	const pods = 10_000
	plan := MakePlan(big(t, pods), planned)
	// 10 broken ones, outside the budget; 100 in flight and those 10 are
	// unavailable, 200 may be.
	g.Expect(plan.Moves).To(HaveLen(10 + 90))
	g.Expect(plan.Pods).To(HaveLen(pods))
	g.Expect(plan.Blockers).To(HaveLen(pods - len(plan.Moves) - 1000))
}
