// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// The condition KruisePodReady has several writers. Its message lists those who
// keep the pod out of service; it is True when the list is empty. We add and remove
// our own entries, and leave those of others alone.

// notReadyEntry is an entry of the list.
type notReadyEntry struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// Our entries.
const (
	notReadyAgent     = "Lifecycle"
	notReadyKeyUpdate = "preUpdateHook"
	notReadyKeyDelete = "preDeleteHook"
)

// requestAgent is the agent of OpenKruise's entries for ContainerRecreateRequests.
const requestAgent = "ContainerRecreateRequest"

// notReadyList returns who keeps a pod out of service. What cannot be read was
// written by a client that wants it out of service, and is kept as one entry.
func notReadyList(pod *corev1.Pod) []notReadyEntry {
	kruise := condition(pod, appsv1beta1.KruisePodReady)
	if kruise.Message == "" {
		return nil
	}
	var list []notReadyEntry
	if err := json.Unmarshal([]byte(kruise.Message), &list); err != nil && kruise.Status != corev1.ConditionTrue {
		return []notReadyEntry{{UserAgent: "unknown", Key: kruise.Message}}
	}
	return list
}

// isMarkedFor reports whether we keep a pod out of service for one of the keys.
func isMarkedFor(pod *corev1.Pod, keys ...string) bool {
	return hasGate(pod, appsv1beta1.KruisePodReady) && slices.ContainsFunc(notReadyList(pod), func(n notReadyEntry) bool {
		return n.UserAgent == notReadyAgent && slices.Contains(keys, n.Key)
	})
}

// withNotReady returns the condition with our entries replaced by that for a key;
// none if the key is empty.
func withNotReady(pod *corev1.Pod, key string, now metav1.Time) conditionPatch {
	list := slices.DeleteFunc(notReadyList(pod), func(n notReadyEntry) bool { return n.UserAgent == notReadyAgent })
	if key != "" {
		list = append(list, notReadyEntry{notReadyAgent, key})
	}
	return withNotReadyList(pod, list, now)
}

// ReleaseFromRequest returns the strategic merge patch of pods/status that takes the entry of a
// ContainerRecreateRequest, as namespace/name, off the list of those who keep a pod out of service.
// OpenKruise adds such entries. It is nil if there is none.
func ReleaseFromRequest(pod *corev1.Pod, request string, now metav1.Time) ([]byte, error) {
	list := notReadyList(pod)
	left := slices.DeleteFunc(slices.Clone(list), func(n notReadyEntry) bool { return n == notReadyEntry{requestAgent, request} })
	if len(left) == len(list) {
		return nil, nil
	}
	return json.Marshal(objectPatch{
		Metadata: metadataPatch{UID: string(pod.UID), ResourceVersion: pod.ResourceVersion},
		Status:   &statusPatch{Conditions: []conditionPatch{withNotReadyList(pod, left, now)}},
	})
}

// withNotReadyList returns the condition with a list of those who keep a pod out of service.
func withNotReadyList(pod *corev1.Pod, list []notReadyEntry, now metav1.Time) conditionPatch {
	slices.SortFunc(list, func(a, b notReadyEntry) int {
		return cmp.Or(cmp.Compare(a.UserAgent, b.UserAgent), cmp.Compare(a.Key, b.Key))
	})
	before := condition(pod, appsv1beta1.KruisePodReady)
	after := conditionPatch{Type: appsv1beta1.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}
	if len(list) > 0 {
		// A list of texts marshals.
		raw, _ := json.Marshal(list)
		after.Status, after.Message = corev1.ConditionFalse, string(raw)
	}
	if before.Status == after.Status {
		after.LastTransitionTime = before.LastTransitionTime
	}
	return after
}
