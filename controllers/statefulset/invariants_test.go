// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// expectStatusInvariants checks what is true of the status at any moment after a
// reconciliation, whatever the set is going through.
func (w *world) expectStatusInvariants() {
	GinkgoHelper()
	set := w.refresh()
	status := set.Status
	Expect(status.ObservedGeneration).To(BeNumerically("<=", set.Generation), "observedGeneration")
	expectSaneConditions(set)
	if status.UpdateRevision == "" {
		return // it failed before it could count
	}
	expectConsistentCounts(status)
	expectSaneBlockers(status)
	revisions := w.revisions()
	Expect(revisions).To(HaveKey(status.UpdateRevision), "updateRevision")
	Expect(revisions).To(HaveKey(status.CurrentRevision), "currentRevision")
	Expect(status.LabelSelector).NotTo(BeEmpty(), "labelSelector")
}

func expectConsistentCounts(status appsv1beta1.StatefulSetStatus) {
	GinkgoHelper()
	within := func(what string, inner, outer int32) {
		GinkgoHelper()
		Expect(inner).To(And(BeNumerically(">=", 0), BeNumerically("<=", outer)), what)
	}
	within("readyReplicas of replicas", status.ReadyReplicas, status.Replicas)
	within("availableReplicas of readyReplicas", status.AvailableReplicas, status.ReadyReplicas)
	within("updatedReplicas of replicas", status.UpdatedReplicas, status.Replicas)
	within("currentReplicas of replicas", status.CurrentReplicas, status.Replicas)
	within("updatedReadyReplicas of updatedReplicas", status.UpdatedReadyReplicas, status.UpdatedReplicas)
	within("updatedReadyReplicas of readyReplicas", status.UpdatedReadyReplicas, status.ReadyReplicas)
	within("updatedAvailableReplicas of updatedReadyReplicas", status.UpdatedAvailableReplicas, status.UpdatedReadyReplicas)
	within("updatedAvailableReplicas of availableReplicas", status.UpdatedAvailableReplicas, status.AvailableReplicas)
	Expect(status.InPlaceUpdated+status.Recreated).To(Equal(status.UpdatedReplicas), "inPlaceUpdated + recreated = updatedReplicas")
	if status.CurrentRevision == status.UpdateRevision {
		Expect(status.CurrentReplicas).To(Equal(status.UpdatedReplicas), "one revision, one count")
	} else {
		within("currentReplicas + updatedReplicas of replicas", status.CurrentReplicas+status.UpdatedReplicas, status.Replicas)
	}
}

// expectSaneConditions checks that Ready, Progressing and Stalled are there,
// each condition once and complete, and that they do not contradict each other.
func expectSaneConditions(set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	found := map[string]metav1.Condition{}
	for _, condition := range set.Status.Conditions {
		Expect(found).NotTo(HaveKey(condition.Type), "one condition of each type")
		found[condition.Type] = condition
		Expect(condition.Reason).NotTo(BeEmpty(), "reason of %s", condition.Type)
		Expect(condition.Message).NotTo(BeEmpty(), "message of %s", condition.Type)
		Expect(condition.LastTransitionTime.IsZero()).To(BeFalse(), "transition time of %s", condition.Type)
		Expect(condition.ObservedGeneration).To(BeNumerically("<=", set.Generation), "generation of %s", condition.Type)
		Expect(condition.Status).NotTo(Equal(metav1.ConditionUnknown), "status of %s", condition.Type)
	}
	Expect(found).To(HaveKey(appsv1beta1.ConditionStalled))
	if set.Status.UpdateRevision != "" {
		Expect(found).To(And(HaveKey(appsv1beta1.ConditionReady), HaveKey(appsv1beta1.ConditionProgressing)))
	}
	for conditionType, condition := range found {
		switch conditionType {
		case appsv1beta1.ConditionReady, appsv1beta1.ConditionProgressing, appsv1beta1.ConditionStalled:
		case appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ConditionFailedUpdatePod:
			Expect(condition.Status).To(Equal(metav1.ConditionTrue), "%s is only there while it is true", conditionType)
		default:
			Fail("unknown condition " + conditionType)
		}
	}
	if found[appsv1beta1.ConditionReady].Status == metav1.ConditionTrue {
		Expect(found[appsv1beta1.ConditionProgressing].Status).To(Equal(metav1.ConditionFalse), "what is ready is not under way")
	}
}

func expectSaneBlockers(status appsv1beta1.StatefulSetStatus) {
	GinkgoHelper()
	Expect(len(status.Blockers)).To(BeNumerically("<=", 10), "blockers")
	named := map[string]bool{}
	for _, blocker := range status.Blockers {
		what := blocker.Pod
		if strings.HasPrefix(blocker.Message, "claim ") {
			what, _, _ = strings.Cut(blocker.Message, ": ")
		}
		Expect(named).NotTo(HaveKey(what), "one blocker of each pod, and of each claim")
		named[what] = true
		Expect(blocker.Pod).NotTo(BeEmpty())
		Expect(blocker.Reason).To(MatchRegexp("^[A-Z][A-Za-z]+$"), "reason of %s", blocker.Pod)
		Expect(blocker.Message).NotTo(BeEmpty(), "message of %s", blocker.Pod)
		Expect(blocker.Since.IsZero()).To(BeFalse(), "since of %s", blocker.Pod)
	}
}

// expectSettled checks that the set reports to be done, at one revision, with a
// number of pods.
func (w *world) expectSettled(replicas int32) {
	GinkgoHelper()
	set := w.refresh()
	status := set.Status
	Expect(status.ObservedGeneration).To(Equal(set.Generation))
	Expect(conditionOf(set, appsv1beta1.ConditionReady)).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", set.Generation)))
	Expect(conditionOf(set, appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionFalse))
	for what, count := range map[string]int32{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"currentReplicas": status.CurrentReplicas, "updatedReplicas": status.UpdatedReplicas,
		"updatedReadyReplicas": status.UpdatedReadyReplicas, "updatedAvailableReplicas": status.UpdatedAvailableReplicas,
	} {
		Expect(count).To(Equal(replicas), what)
	}
	Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
	Expect(status.Blockers).To(BeEmpty())
	Expect(w.pods()).To(HaveLen(int(replicas)))
}

// conditionOf returns a condition of a set, which must be there.
func conditionOf(set *appsv1beta1.StatefulSet, conditionType string) metav1.Condition {
	GinkgoHelper()
	for _, condition := range set.Status.Conditions {
		if condition.Type == conditionType {
			return condition
		}
	}
	Fail("no condition " + conditionType)
	return metav1.Condition{}
}

func conditionTypes(set *appsv1beta1.StatefulSet) []string {
	var types []string
	for _, condition := range set.Status.Conditions {
		types = append(types, condition.Type)
	}
	return types
}
