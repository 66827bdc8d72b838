// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

var now = builders.Start.Add(time.Hour)

// seen is how the planner sees a pod: "u" updated, "o" old, "x" changed and not
// complete; then "a" available, "r" ready, "-" neither, "t" being deleted; then
// "i" if it was updated in place.
type seen string

// scopeOf returns a scope after planning, with the pods as they were seen, the
// ordinal 0 first. An empty string is a pod that is missing.
func scopeOf(t *testing.T, set *appsv1beta1.StatefulSet, pods ...seen) *scope {
	t.Helper()
	s := newScope(set, now)
	s.Revisions.Update = revisionOf(t, "sample-new", set.Spec.Template)
	s.Revisions.Current = revisionOf(t, "sample-old", set.Spec.Template)
	s.Planned = true
	for ordinal, how := range pods {
		if how == "" {
			continue
		}
		state := stateOf(ordinal, how)
		s.members = append(s.members, &member{Pod: state.Pod, ordinal: ordinal})
		s.Plan.Pods = append(s.Plan.Pods, state)
	}
	s.ordinals = s.ordinalsInView()
	s.held = s.heldOrdinals()
	s.counts = countPods(s)
	return s
}

func stateOf(ordinal int, how seen) inplace.PodState {
	revision := "sample-new"
	if how[0] == 'o' {
		revision = "sample-old"
	}
	b := builders.Pod(podName("sample", ordinal), revision, "nginx:alpine")
	if how[1] == 't' {
		b.Deleted(now)
	}
	if len(how) > 2 && how[2] == 'i' {
		b.Record(appsv1beta1.InPlaceUpdateState{Revision: revision})
	}
	return inplace.PodState{
		Pod: b.Build(), Proved: how[0] != 'x', Updated: how[0] == 'u',
		Ready: how[1] == 'r' || how[1] == 'a', Available: how[1] == 'a',
	}
}

func TestCounts(t *testing.T) {
	for name, test := range map[string]struct {
		pods []seen
		want counts
	}{
		"none":                     {nil, counts{}},
		"all old":                  {[]seen{"oa", "oa"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 2, Available: 2}, current: 2, pending: 2}},
		"all new":                  {[]seen{"ua", "ua"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 2, Available: 2, Updated: 2, UpdatedReady: 2, UpdatedAvailable: 2}}},
		"one in place":             {[]seen{"oa", "uai"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 2, Available: 2, Updated: 1, UpdatedReady: 1, UpdatedAvailable: 1, InPlace: 1}, current: 1, pending: 1}},
		"one between two":          {[]seen{"oa", "x-i"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 1, Available: 1}, current: 1, pending: 2}},
		"ready for a short time":   {[]seen{"oa", "ur"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 2, Available: 1, Updated: 1, UpdatedReady: 1}, current: 1, pending: 1}},
		"one being deleted":        {[]seen{"oa", "ut"}, counts{Counts: engine.Counts{Replicas: 1, Ready: 1, Available: 1}, current: 1, pending: 1}},
		"one missing, one unready": {[]seen{"", "o-", "ua"}, counts{Counts: engine.Counts{Replicas: 2, Ready: 1, Available: 1, Updated: 1, UpdatedReady: 1, UpdatedAvailable: 1}, current: 1, pending: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			set := builders.StatefulSet("default", "sample", "nginx:alpine").Build()
			NewWithT(t).Expect(countPods(scopeOf(t, set, test.pods...))).To(Equal(test.want))
		})
	}
}

func TestCondemnedPodsCountUntilTheyAreDeleted(t *testing.T) {
	s := scopeOf(t, builders.StatefulSet("default", "sample", "nginx:alpine").Replicas(1).Build(), "ua")
	s.condemned = []*member{podIn(healthy, 1), podIn(terminating, 2)}
	NewWithT(t).Expect(countPods(s).Replicas).To(BeEquivalentTo(2))
}

func TestProgress(t *testing.T) {
	paused := func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true }
	onDelete := func(set *appsv1beta1.StatefulSet) {
		set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	partition := func(n int32) func(*appsv1beta1.StatefulSet) {
		return func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(n) }
	}
	both := func(changes ...func(*appsv1beta1.StatefulSet)) func(*appsv1beta1.StatefulSet) {
		return func(set *appsv1beta1.StatefulSet) {
			for _, change := range changes {
				change(set)
			}
		}
	}
	tests := map[string]struct {
		with          func(*appsv1beta1.StatefulSet)
		pods          []seen
		ready, moving bool
		reason        string
	}{
		"done":                                   {nil, []seen{"ua", "ua", "ua"}, true, false, appsv1beta1.ReasonAvailable},
		"not available for long enough":          {nil, []seen{"ua", "ua", "ur"}, false, true, appsv1beta1.ReasonUpdating},
		"none there yet":                         {nil, nil, false, true, appsv1beta1.ReasonScaling},
		"one missing":                            {nil, []seen{"ua", "", "ua"}, false, true, appsv1beta1.ReasonScaling},
		"in the middle":                          {nil, []seen{"oa", "oa", "x-"}, false, true, appsv1beta1.ReasonUpdating},
		"not begun":                              {nil, []seen{"oa", "oa", "oa"}, false, true, appsv1beta1.ReasonUpdating},
		"paused":                                 {paused, []seen{"oa", "oa", "ua"}, false, false, appsv1beta1.ReasonPaused},
		"paused when done":                       {paused, []seen{"ua", "ua", "ua"}, true, false, appsv1beta1.ReasonAvailable},
		"waits for deletions":                    {onDelete, []seen{"oa", "oa", "ua"}, true, false, appsv1beta1.ReasonOnDelete},
		"waits for deletions, one not available": {onDelete, []seen{"oa", "oa", "u-"}, false, true, appsv1beta1.ReasonUpdating},
		"partition reached":                      {partition(2), []seen{"oa", "oa", "ua"}, true, false, appsv1beta1.ReasonPartitionReached},
		"partition not reached":                  {partition(1), []seen{"oa", "oa", "ua"}, false, true, appsv1beta1.ReasonUpdating},
		"partition of all":                       {partition(3), []seen{"oa", "oa", "oa"}, true, false, appsv1beta1.ReasonPartitionReached},
		"partition larger than the set":          {partition(9), []seen{"oa", "oa", "oa"}, true, false, appsv1beta1.ReasonPartitionReached},
		"partition of pods that are new anyway":  {partition(2), []seen{"ua", "ua", "ua"}, true, false, appsv1beta1.ReasonAvailable},
		// The canary is taken back: the pods below the partition never left the
		// revision, the one above has to go back to it.
		"canary to be taken back":           {partition(2), []seen{"ua", "ua", "oa"}, false, true, appsv1beta1.ReasonUpdating},
		"canary to be taken back, but held": {both(partition(2), paused), []seen{"ua", "ua", "oa"}, false, false, appsv1beta1.ReasonPaused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := builders.StatefulSet("default", "sample", "nginx:alpine").Build()
			if test.with != nil {
				test.with(set)
			}
			s := scopeOf(t, set, test.pods...)
			s.SetConditions(s.conditions(), s.standing, nil)
			g.Expect(meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionReady)).To(Equal(test.ready), "Ready")
			g.Expect(meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionProgressing)).To(Equal(test.moving), "Progressing")
			g.Expect(meta.IsStatusConditionFalse(set.Status.Conditions, appsv1beta1.ConditionStalled)).To(BeTrue(), "not Stalled")
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady).Reason).To(Equal(test.reason))
		})
	}
}

// Pods that are restarted in service are no secret.
func TestProgressNamesPodsThatCannotBeDrained(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("default", "sample", "nginx:alpine").Build()
	s := scopeOf(t, set, "oa", "oa", "ua")
	message := func() string {
		s.SetConditions(s.conditions(), s.standing, nil)
		return meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionProgressing).Message
	}
	g.Expect(message()).To(HaveSuffix("are to be updated to revision " + s.Revisions.Update.Name()))
	s.Plan.CannotDrain = &inplace.Refusal{Reason: inplace.ReasonCannotDrain, Message: "no policy acts in namespace default"}
	g.Expect(message()).To(HaveSuffix("; pods without a readiness gate are restarted in service: no policy acts in namespace default"))
}

func TestFailuresAreConditionsWhileTheyLast(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("default", "sample", "nginx:alpine").Build()
	s := scopeOf(t, set, "ua", "ua", "ua")
	s.Scaling.Errs, s.Updating.Errs = []error{errors.New("quota exceeded")}, []error{errors.New("denied by a webhook")}
	s.SetConditions(s.conditions(), s.standing, nil)
	for conditionType, words := range map[string]string{
		appsv1beta1.ConditionFailedCreatePod: "quota exceeded", appsv1beta1.ConditionFailedUpdatePod: "denied by a webhook",
	} {
		condition := meta.FindStatusCondition(set.Status.Conditions, conditionType)
		g.Expect(condition).NotTo(BeNil(), conditionType)
		g.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
		g.Expect(condition.Message).To(ContainSubstring(words))
	}
	s.Scaling.Errs, s.Updating.Errs = nil, nil
	s.SetConditions(s.conditions(), s.standing, nil)
	g.Expect(set.Status.Conditions).To(HaveLen(3), "Ready, Progressing and Stalled")
}

// The API server refuses a status with a longer message: then nothing at all
// would be reported.
func TestMessagesOfManyFailuresFit(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("default", "sample", "nginx:alpine").Replicas(500).Build()
	s := scopeOf(t, set)
	var all []error
	for i := range 500 {
		all = append(all, fmt.Errorf("create pod default/sample-%d: pods \"sample-%d\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0", i, i))
	}
	s.Scaling.Errs = all
	s.SetConditions(s.conditions(), s.standing, nil)
	condition := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionFailedCreatePod)
	g.Expect(len(condition.Message)).To(BeNumerically("<=", 32768))
	g.Expect(condition.Message).To(ContainSubstring("exceeded quota: few"))
}

// A server that cannot be reached says nothing about the spec.
func TestATransientFailureIsNotAnInvalidSpec(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("default", "sample", "nginx:alpine").Build()
	s := newScope(set, now)
	s.SetConditions(s.conditions(), s.standing, fmt.Errorf("create ControllerRevision default/sample-1: %w", apierrors.NewServiceUnavailable("try again")))
	stalled := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)
	if stalled != nil {
		g.Expect(stalled.Reason).NotTo(Equal(appsv1beta1.ReasonInvalidSpec))
	}
}
