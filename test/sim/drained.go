// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// drainPolicy is the admission policy that keeps drained pods out of service
// (config/policies/drain.yaml), which may be gone for a time.
type drainPolicy struct {
	gone bool
	// changed is when it went or came last; zero if it was always there.
	changed time.Time
}

// drainMemory is longer than it takes until what was drained, or not, while the policy was
// gone is over: the operator asks for it again every 15 s.
const drainMemory = 2 * time.Minute

// admit does what the policy does to a write of a pod's status.
func (p *drainPolicy) admit(held, obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || p.gone || !hasDrainedLabel(pod) {
		return
	}
	before, _ := held.(*corev1.Pod)
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != corev1.PodReady || c.Status == corev1.ConditionUnknown {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			c.Status, c.Reason = corev1.ConditionFalse, "InPlaceUpdating"
		}
		if conditionIs(before, corev1.PodReady, corev1.ConditionFalse) {
			for _, stored := range before.Status.Conditions {
				if stored.Type == corev1.PodReady {
					c.LastTransitionTime = stored.LastTransitionTime
				}
			}
		}
	}
}

// isCertain reports whether a pod without a gate is drained in any case.
func (p *drainPolicy) isCertain(now time.Time) bool {
	return !p.gone && (p.changed.IsZero() || now.Sub(p.changed) > drainMemory)
}

func hasDrainedLabel(pod *corev1.Pod) bool {
	_, has := pod.Labels[appsv1beta1.DrainedLabel]
	return has
}

// isDrained reports whether the operator drains a pod by the label.
func isDrained(pod *corev1.Pod) bool {
	return slices.Contains(strings.Split(pod.Labels[appsv1beta1.DrainedLabel], "."), appsv1beta1.DrainedForUpdate)
}

// mustBeDrained reports whether no container of a pod may restart in service. A workload of
// Kubernetes is left to it where pods cannot be drained, and that is known.
func (w *World) mustBeDrained(pod *corev1.Pod) bool {
	now := w.clock.Now()
	return isGated(pod) || w.server.drains.isCertain(now) || w.servesUndrained(pod, now)
}

// servesUndrained reports whether a pod of a workload of Kubernetes serves, which the
// operator has known for a while that it cannot drain.
func (w *World) servesUndrained(pod *corev1.Pod, now time.Time) bool {
	drains := w.server.drains
	return w.native != nil && drains.gone && now.Sub(drains.changed) > drainMemory && conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)
}

// toggleDrainPolicy lets an administrator delete the policy, or bring it back.
func (w *World) toggleDrainPolicy() {
	w.setDrainPolicy(!w.server.drains.gone)
}

func (w *World) setDrainPolicy(gone bool) {
	if w.server.drains.gone != gone {
		w.say("administrator: the policy that keeps drained pods out of service is gone %t", gone)
		w.server.drains = drainPolicy{gone: gone, changed: w.clock.Now()}
	}
}

// drainElsewhere lets another one drain a pod of its own accord, or end that.
func (w *World) drainElsewhere() {
	pod := w.anyPod()
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return
	}
	list := strings.FieldsFunc(pod.Labels[appsv1beta1.DrainedLabel], func(r rune) bool { return r == '.' })
	if other := slices.Index(list, otherDrainer); other >= 0 {
		list = slices.Delete(list, other, other+1)
	} else {
		list = append([]string{otherDrainer}, list...)
	}
	w.say("another: pod %s is drained by %v", pod.Name, list)
	mutate(w.server, pod.Name, func(pod *corev1.Pod) {
		pod.Labels = maps.Clone(pod.Labels)
		if len(list) == 0 {
			delete(pod.Labels, appsv1beta1.DrainedLabel)
			return
		}
		if pod.Labels == nil { // a person made it
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1beta1.DrainedLabel] = strings.Join(list, ".")
		setPodCondition(pod, corev1.PodReady, false, w.clock.Now())
	})
}

// takeLabelOff lets a user, or a program that knows what labels there are to be, put a pod
// into service in the middle of a drain.
func (w *World) takeLabelOff() {
	pods := all[*corev1.Pod](w.server)
	drained := slices.DeleteFunc(slices.Sorted(maps.Keys(pods)), func(name string) bool { return !hasDrainedLabel(pods[name]) })
	if len(drained) == 0 {
		return
	}
	name := pick(w.choices, drained)
	w.say("a user: takes the label of drained pod %s off", name)
	w.unlabeled[pods[name].UID] = w.clock.Now()
	mutate(w.server, name, func(pod *corev1.Pod) {
		pod.Labels = maps.Clone(pod.Labels)
		delete(pod.Labels, appsv1beta1.DrainedLabel)
	})
}

// isPutIntoService reports whether a user has put a pod into service that was drained: what
// was changed before is stopped in service.
func (w *World) isPutIntoService(pod *corev1.Pod) bool {
	at, was := w.unlabeled[pod.UID]
	return was && w.clock.Now().Sub(at) < drainMemory
}

// otherDrainer is one whom the operator does not know.
const otherDrainer = "other"

// endOtherDrains lets the other one give back all pods.
func (w *World) endOtherDrains() {
	pods := all[*corev1.Pod](w.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if strings.Contains(pods[name].Labels[appsv1beta1.DrainedLabel], otherDrainer) {
			mutate(w.server, name, func(pod *corev1.Pod) {
				pod.Labels = maps.Clone(pod.Labels)
				delete(pod.Labels, appsv1beta1.DrainedLabel)
				if isDrained(pods[name]) {
					pod.Labels[appsv1beta1.DrainedLabel] = appsv1beta1.DrainedForUpdate
				}
			})
		}
	}
}

// unreadySince returns since when a pod has not been ready; zero if that is not known.
func (l *law) unreadySince(pod *corev1.Pod) time.Time {
	if l == nil {
		return time.Time{}
	}
	return l.unready[pod.UID]
}
