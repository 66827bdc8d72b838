// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

var now = builders.Start.Add(time.Hour)

func podNamed(ordinal int) *corev1.Pod {
	return builders.Pod(fmt.Sprintf("sample-%d", ordinal), "sample-1", "nginx:alpine").Ready(false, builders.Start).Build()
}

func TestBlockersKeepTheirTime(t *testing.T) {
	g := NewWithT(t)
	plan := inplace.Plan{}
	blocker := func(ordinal int, reason string, since time.Time) inplace.Blocker {
		return inplace.Blocker{
			Pod: podNamed(ordinal), State: inplace.Restarting, Reason: reason, Message: "says " + reason, Since: since,
		}
	}
	earlier := metav1.NewTime(now.Add(-time.Hour))
	before := []appsv1beta1.Blocker{
		{Pod: "sample-0", Reason: "ImagePullBackOff", Since: earlier},
		{Pod: "sample-1", Reason: "ImagePullBackOff", Since: earlier},
	}
	plan.Blockers = []inplace.Blocker{
		blocker(0, "ImagePullBackOff", now.Add(-time.Minute)),
		blocker(1, "CrashLoopBackOff", now.Add(-time.Minute)),
		blocker(2, "MaxUnavailable", time.Time{}),
	}
	got := Blockers(plan, nil, before, now)
	g.Expect(got).To(HaveLen(3))
	g.Expect(got[0]).To(Equal(appsv1beta1.Blocker{
		Pod: "sample-0", Step: "Restarting", Reason: "ImagePullBackOff", Message: "says ImagePullBackOff", Since: earlier.Rfc3339Copy(),
	}), "the same reason: since it was first reported")
	g.Expect(got[1].Since.Time).To(BeTemporally("==", now.Add(-time.Minute)), "another reason: since the pod tells")
	g.Expect(got[2].Since.Time).To(BeTemporally("==", now), "the pod does not tell: since now")
}

func TestTenBlockersAreReported(t *testing.T) {
	g := NewWithT(t)
	plan := inplace.Plan{}
	for ordinal := range 12 {
		plan.Blockers = append(plan.Blockers, inplace.Blocker{Pod: podNamed(ordinal), Reason: "PodNotReady"})
	}
	got := Blockers(plan, nil, nil, now)
	g.Expect(got).To(HaveLen(MaxBlockers))
	g.Expect(got[0].Pod).To(Equal("sample-0"), "the order is kept, the worst first")
}

func TestFailedMovesComeBeforeOtherBlockers(t *testing.T) {
	g := NewWithT(t)
	plan := inplace.Plan{
		Pods:     []inplace.PodState{{Pod: podNamed(0)}, {Pod: podNamed(1), Step: inplace.Step{State: inplace.Patching}}},
		Blockers: []inplace.Blocker{{Pod: podNamed(0), Reason: "PodNotReady"}},
	}
	got := Blockers(plan, map[string]error{"sample-1": errors.New("quota exceeded")}, nil, now)
	g.Expect(got).To(HaveLen(2))
	g.Expect(got[0].Pod + " " + got[0].Step + " " + got[0].Message).To(Equal("sample-1 Patching quota exceeded"))
}

func TestTheFirstBlockerIsNamed(t *testing.T) {
	g := NewWithT(t)
	waits := inplace.Blocker{Pod: podNamed(1), State: inplace.Waiting, Reason: "MaxUnavailable", Message: "1 pod is unavailable"}
	restarts := inplace.Blocker{Pod: podNamed(2), State: inplace.Restarting, Reason: "ImagePullBackOff", Message: "container main: no such image"}
	g.Expect(FirstBlocker(inplace.Plan{})).To(BeEmpty())
	g.Expect(FirstBlocker(inplace.Plan{Blockers: []inplace.Blocker{waits}})).To(BeEmpty(), "its turn comes")
	g.Expect(FirstBlocker(inplace.Plan{Blockers: []inplace.Blocker{restarts, waits}})).To(Equal("; pod sample-2: ImagePullBackOff: container main: no such image"))
}
