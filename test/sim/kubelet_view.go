// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// view is what a worker gets to see of a pod. It took up its work a moment ago, so
// it may finish what it saw then, and publish it, after a newer generation was
// written; and of two that were written in between, it may see one after the other.
func (w *worker) view(pod *corev1.Pod) *corev1.Pod {
	if w.seen == 0 || pod.Generation <= w.seen {
		return pod
	}
	switch w.kubelet.world.choices.intN(3) {
	case 1:
		return w.heldAt(w.seen+1, pod)
	case 2:
		return w.heldAt(w.seen, pod)
	default:
		return pod
	}
}

// heldAt returns the pod as the server held it last in a generation; the newest
// if it never did.
func (w *worker) heldAt(generation int64, newest *corev1.Pod) *corev1.Pod {
	for _, e := range slices.Backward(w.kubelet.world.server.log["Pod"]) {
		if held, ok := e.object.(*corev1.Pod); ok && held.UID == w.uid && held.Generation == generation {
			return held
		}
	}
	return newest
}

// isOvertaken reports whether what a worker would publish is published only with
// what it does next: another part of the kubelet writes statuses, and takes the last.
func (w *worker) isOvertaken() bool {
	return w.kubelet.world.choices.oneIn(4)
}

// probeStopped lets probes notice that containers do not answer, while they are
// stopped and before others are started, which may have to be pulled. Of nothing
// else is anything told meanwhile.
func (w *worker) probeStopped() {
	for _, name := range w.stopping {
		if c := w.running[name]; !c.silent && w.isReady(name) && w.kubelet.world.choices.oneIn(4) {
			c.silent = true
			w.publish()
		}
	}
}
