// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// reported tells of a plan as a controller does, and returns the status that it leaves
// and the events.
func reported(t *testing.T, plan inplace.Plan, failed map[string]error, before []appsv1beta1.Blocker) (after []appsv1beta1.Blocker, told []string) {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	after = Blockers(plan, failed, before, now)
	ReportStuck(recorder, builders.StatefulSet("default", "sample", "nginx").Build(), plan, before, after)
	close(recorder.Events)
	for event := range recorder.Events {
		told = append(told, event)
	}
	return after, told
}

// stuckPods is a plan with so many pods that are stuck, after as many others.
func stuckPods(others, stuck int) inplace.Plan {
	plan := inplace.Plan{}
	for ordinal := range others {
		plan.Pods = append(plan.Pods, inplace.PodState{Pod: podNamed(100 + ordinal), Step: inplace.Step{State: inplace.Patching}})
	}
	for ordinal := range stuck {
		plan.Blockers = append(plan.Blockers, inplace.Blocker{
			Pod: podNamed(ordinal), State: inplace.Stuck, Reason: inplace.ReasonPodNotReady, Message: "says why",
		})
	}
	return plan
}

func TestStuckPodsAreToldOfOnce(t *testing.T) {
	g := NewWithT(t)
	plan := stuckPods(0, 2)
	after, told := reported(t, plan, nil, nil)
	g.Expect(told).To(Equal([]string{
		"Warning PodNotReady pod sample-0: says why", "Warning PodNotReady pod sample-1: says why",
	}), "the words of the blocker")
	_, told = reported(t, plan, nil, after)
	g.Expect(told).To(BeEmpty())
}

// Failed moves take places of the list.
func TestStuckPodsBesideFailedMovesAreToldOfOnce(t *testing.T) {
	g := NewWithT(t)
	plan := stuckPods(3, 12)
	failed := map[string]error{}
	for _, pod := range plan.Pods {
		failed[pod.Pod.Name] = errors.New("quota exceeded")
	}
	after, told := reported(t, plan, failed, nil)
	g.Expect(told).To(HaveLen(MaxBlockers - 3))
	after, told = reported(t, plan, failed, after)
	g.Expect(told).To(BeEmpty())

	_, told = reported(t, plan, nil, after)
	g.Expect(told).To(Equal([]string{
		"Warning PodNotReady pod sample-7: says why", "Warning PodNotReady pod sample-8: says why", "Warning PodNotReady pod sample-9: says why",
	}), "those that come into the list")
}

// The executor tells of what the server refuses, once for all pods.
func TestDeniedPodsAreNotToldOfOneByOne(t *testing.T) {
	plan := stuckPods(0, 2)
	for i := range plan.Blockers {
		plan.Blockers[i].Denied = true
	}
	_, told := reported(t, plan, nil, nil)
	NewWithT(t).Expect(told).To(BeEmpty())
}

// The API server refuses an event whose note is longer than 1 KiB, and a registry's
// answer can be.
func TestLongReasonsFitIntoEvents(t *testing.T) {
	g := NewWithT(t)
	plan := stuckPods(0, 1)
	plan.Blockers[0].Message = strings.Repeat("no such image; ", 500)
	_, told := reported(t, plan, nil, nil)
	g.Expect(told).To(HaveLen(1))
	g.Expect(len(told[0])).To(BeNumerically("<", 1024))
}
