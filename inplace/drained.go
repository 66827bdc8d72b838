// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A pod without a readiness gate is drained by a label. While the pod has it, an admission
// policy stores the condition Ready as False, whatever the kubelet writes. The value of the
// label lists who drains the pod, as the message of KruisePodReady does: each adds and
// removes its own entry, with the resource version as a precondition.

// drainSeparator is between the entries of the label.
const drainSeparator = "."

// drainers returns who drains a pod by the label.
func drainers(pod *corev1.Pod) []string {
	return strings.FieldsFunc(pod.Labels[appsv1beta1.DrainedLabel], func(r rune) bool { return string(r) == drainSeparator })
}

// isDrainedByLabel reports whether we drain a pod by the label.
func isDrainedByLabel(pod *corev1.Pod) bool {
	return slices.Contains(drainers(pod), appsv1beta1.DrainedForUpdate)
}

// withDrainer returns the value of the label with our entry.
func withDrainer(pod *corev1.Pod) *string {
	list := append(drainers(pod), appsv1beta1.DrainedForUpdate)
	slices.Sort(list)
	return ptr.To(strings.Join(slices.Compact(list), drainSeparator))
}

// withoutDrainers returns the value of the label without some entries; nil, which takes
// the label off, if none is left.
func withoutDrainers(pod *corev1.Pod, gone func(entry string) bool) *string {
	left := slices.DeleteFunc(drainers(pod), gone)
	if len(left) == 0 {
		return nil
	}
	return ptr.To(strings.Join(left, drainSeparator))
}

// DrainsByLabel reports whether a step drains a pod by the label: it has no readiness gate
// by which the step would.
func DrainsByLabel(pod *corev1.Pod, step Step) bool {
	return step.Action == MarkNotReady && step.NotReadyKey == "" && !hasGate(pod, appsv1beta1.InPlaceUpdateReady)
}

// HasDrainedLabel reports whether a pod has the label, whoever drains it.
func HasDrainedLabel(pod *corev1.Pod) bool {
	_, has := pod.Labels[appsv1beta1.DrainedLabel]
	return has
}

// drainedCondition is the condition of a pod that is drained by the label. Where the pod
// was not ready before, it has been out of service since then.
func drainedCondition(pod *corev1.Pod, message string, now metav1.Time) conditionPatch {
	ready := conditionPatch{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: conditionReasonUpdating, Message: message, LastTransitionTime: now,
	}
	if before := condition(pod, corev1.PodReady); before.Status == ready.Status {
		ready.LastTransitionTime = before.LastTransitionTime
	}
	return ready
}

// servingCondition is the condition of a pod whose drain ends, and which nothing else keeps
// out of service: nothing waits for the kubelet's next round.
func servingCondition(now metav1.Time) conditionPatch {
	return conditionPatch{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}
}

// TrialDrain returns the strategic merge patch of pods/status that tells, as a dry run,
// whether the API server keeps the pod out of service while it has the label: it says that
// the pod is ready. KeepsDrained reads the answer.
func TrialDrain(pod *corev1.Pod, now metav1.Time) ([]byte, error) {
	return json.Marshal(objectPatch{
		Metadata: metadataPatch{UID: string(pod.UID), Labels: map[string]*string{appsv1beta1.DrainedLabel: withDrainer(pod)}},
		Status:   &statusPatch{Conditions: []conditionPatch{servingCondition(now)}},
	})
}

// KeepsDrained reports whether the answer to TrialDrain says that the pod stays out of
// service.
func KeepsDrained(answer *corev1.Pod) bool {
	return HasDrainedLabel(answer) && condition(answer, corev1.PodReady).Status == corev1.ConditionFalse
}

// EndDrain returns the strategic merge patch of pods/status that ends a drain by the label,
// if the pod is still the one that this was decided on: all of it, or with keepOwn all but
// our own, which the controller of the workload ends. It returns nil if there is nothing to
// end.
func EndDrain(pod *corev1.Pod, keepOwn bool, now metav1.Time) ([]byte, error) {
	left := withoutDrainers(pod, func(entry string) bool { return !keepOwn || entry != appsv1beta1.DrainedForUpdate })
	if value, has := pod.Labels[appsv1beta1.DrainedLabel]; !has || left != nil && *left == value {
		return nil, nil
	}
	return json.Marshal(undrained(pod, metadataPatch{UID: string(pod.UID)}, left, nil, now))
}

// undrained returns a patch that leaves of the label what is given, and of the conditions
// those that are given. A pod that nothing keeps out of service any more is ready, if its
// kubelet has started a container meanwhile: of one that has done nothing since, it is
// not known whether it is still there.
func undrained(pod *corev1.Pod, metadata metadataPatch, left *string, conditions []conditionPatch, now metav1.Time) objectPatch {
	metadata.ResourceVersion = pod.ResourceVersion
	metadata.Labels = withKeys(metadata.Labels, map[string]*string{appsv1beta1.DrainedLabel: left})
	if left == nil && isReadyButForKubelet(pod) && hasStartedSince(pod, readySince(pod)) {
		conditions = append(conditions, servingCondition(now))
	}
	patch := objectPatch{Metadata: metadata}
	if len(conditions) > 0 {
		patch.Status = &statusPatch{Conditions: conditions}
	}
	return patch
}

// hasStartedSince reports whether a container of a pod runs that was started then or later.
func hasStartedSince(pod *corev1.Pod, since time.Time) bool {
	return slices.ContainsFunc(liveContainers(pod), func(container liveContainer) bool {
		running := container.status.State.Running
		return running != nil && !running.StartedAt.Time.Before(since)
	})
}
