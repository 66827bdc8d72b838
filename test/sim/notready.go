// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// keeper is an entry in the message of the condition KruisePodReady: a client
// that keeps the pod out of service.
type keeper struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}

// stranger is another client that keeps pods out of service.
var stranger = keeper{"stranger", "maintenance"}

// operatorAgent is how the operator signs its entries.
const operatorAgent = "Lifecycle"

func keepersOf(pod *corev1.Pod) []keeper {
	var list []keeper
	for _, c := range pod.Status.Conditions {
		if c.Type == appsv1beta1.KruisePodReady && c.Message != "" && json.Unmarshal([]byte(c.Message), &list) != nil {
			return []keeper{{Key: c.Message}}
		}
	}
	return list
}

// strangersOf returns the entries that are not the operator's.
func strangersOf(pod *corev1.Pod) []keeper {
	return slices.DeleteFunc(keepersOf(pod), func(k keeper) bool { return k.UserAgent == operatorAgent })
}

// isKeptOut reports whether the operator keeps a pod out of service, by a readiness
// gate or by the label.
func isKeptOut(pod *corev1.Pod) bool {
	return conditionIs(pod, appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse) || isMarkedNotReady(pod) || isDrained(pod)
}

// isGateClosed reports whether the operator keeps a pod out of service by a readiness gate.
func isGateClosed(pod *corev1.Pod) bool {
	closed := isGatedBy(pod, appsv1beta1.InPlaceUpdateReady) && conditionIs(pod, appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse)
	return closed || isMarkedNotReady(pod)
}

// isMarkedNotReady reports whether the operator keeps a pod out of service by
// KruisePodReady.
func isMarkedNotReady(pod *corev1.Pod) bool {
	return isGatedBy(pod, appsv1beta1.KruisePodReady) && slices.ContainsFunc(keepersOf(pod), func(k keeper) bool { return k.UserAgent == operatorAgent })
}

// keepOut lets the stranger take a pod out of service, or give it back.
func (w *World) keepOut() {
	pod := w.anyPod()
	if pod == nil || !isGatedBy(pod, appsv1beta1.KruisePodReady) {
		return
	}
	out := !slices.Contains(keepersOf(pod), stranger)
	w.say("stranger: keeps %s out of service %t", pod.Name, out)
	mutate(w.server, pod.Name, func(pod *corev1.Pod) { w.setKeeper(pod, out) })
}

// letIn lets the stranger give back all pods.
func (w *World) letIn() {
	pods := all[*corev1.Pod](w.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if slices.Contains(keepersOf(pods[name]), stranger) {
			mutate(w.server, name, func(pod *corev1.Pod) { w.setKeeper(pod, false) })
		}
	}
}

func (w *World) setKeeper(pod *corev1.Pod, out bool) {
	list := slices.DeleteFunc(keepersOf(pod), func(k keeper) bool { return k == stranger })
	if out {
		list = append(list, stranger)
	}
	setPodCondition(pod, appsv1beta1.KruisePodReady, len(list) == 0, w.clock.Now())
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == appsv1beta1.KruisePodReady {
			c.Message = ""
			if len(list) > 0 {
				raw, _ := json.Marshal(list) // texts marshal
				c.Message = string(raw)
			}
		}
	}
}
