// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubectl/pkg/util/qos"
)

// The kubelet grants all sizes of a pod or none. So one that it cannot grant holds up
// every other change of the pod for as long as the spec asks for it.

// comparedWithNode returns a delta that tells what the node has made of the size that it
// leads away from.
func (d Delta) comparedWithNode(pod *corev1.Pod) Delta {
	from, to := quantity(d.From), quantity(d.To)
	_, made := reported(pod, d.Field)
	d.pending = made != nil && !made.IsZero() && made.Cmp(to) <= 0
	d.ungranted = to.Cmp(from) < 0 && isWaiting(pod, d.Field)
	if !d.ungranted || d.Restarts {
		return d
	}
	held := heldFor(pod, d.Field)
	if made == nil && held == nil {
		held = &to // the container has never run: it loses nothing
	}
	if held == nil {
		return d
	}
	d.pending = d.pending || held.Cmp(to) <= 0
	if !d.pending && held.Cmp(from) < 0 {
		d.held = held.String()
	}
	return d
}

// isWaiting reports whether the node has not granted the size of a field: it says so of
// the pod, or has set aside less for the container than that requests.
func isWaiting(pod *corev1.Pod, field Field) bool {
	if condition(pod, corev1.PodResizePending) != nil {
		return true
	}
	field.Limit = false
	size, there := amountOf(&pod.Spec, field)
	allocated, _ := reported(pod, field)
	return there && allocated != nil && allocated.Cmp(size) < 0
}

// heldFor returns the size that the node has granted last for a field; nil if it does not
// tell, or if there is no limit. Of a limit the node tells only what is in force, so that
// may be below the request that it has granted since.
func heldFor(pod *corev1.Pod, field Field) *resource.Quantity {
	request := field
	request.Limit = false
	allocated, _ := reported(pod, request)
	_, made := reported(pod, field)
	switch {
	case field.Limit && (made == nil || made.IsZero()):
		return nil
	case allocated == nil:
		return made
	case !field.Limit, qos.GetPodQOS(pod) == corev1.PodQOSGuaranteed, allocated.Cmp(*made) > 0:
		return allocated
	default:
		return made
	}
}

// takeBackFirst puts before each delta that leads away from a size which the node has not
// granted the one that goes back to what the node has.
func (c Change) takeBackFirst() Change {
	var all Change
	for _, delta := range c {
		if delta.held != "" {
			all = append(all, Delta{Field: delta.Field, From: delta.From, To: delta.held, pending: true})
			delta.From, delta.held, delta.ungranted = delta.held, "", false
		}
		all = append(all, delta)
	}
	return all
}

// restartsUngranted reports whether a container that asks in vain for a size would be
// restarted when that changes.
func (c Change) restartsUngranted() bool {
	return slices.ContainsFunc(c, func(d Delta) bool { return d.Restarts && d.ungranted })
}
