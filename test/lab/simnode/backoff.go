// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/util/format"
)

// crashKey names a container with its definition: after a change of image the
// kubelet forgets how often the old one crashed.
func crashKey(pod *corev1.Pod, spec *corev1.Container) string {
	return string(pod.UID) + "/" + spec.Name + "/" + strconv.FormatUint(kubecontainer.HashContainer(spec), 16)
}

func pullKey(pod *corev1.Pod, spec *corev1.Container) string {
	return string(pod.UID) + "/" + spec.Image
}

// inCrashBackoff tells whether a container that ended at a moment is not to be
// started yet, and keeps that as the reason.
func (r *Runtime) inCrashBackoff(pod *corev1.Pod, spec *corev1.Container, ended, now time.Time) bool {
	key := crashKey(pod, spec)
	until, waiting := r.crashes.until(key, ended, now)
	if !waiting {
		return false
	}
	r.failures.add(spec.Name, corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s",
			r.crashes.entries[key].wait, spec.Name, format.Pod(pod)),
	}, now.Add(r.timing.Resync))
	r.wakeAt(until)
	return true
}

// inPullBackoff is inCrashBackoff for an image that could not be pulled.
func (r *Runtime) inPullBackoff(pod *corev1.Pod, spec *corev1.Container, now time.Time) bool {
	key := pullKey(pod, spec)
	until, waiting := r.pulls.until(key, r.pulls.entries[key].at, now)
	if !waiting {
		return false
	}
	r.failures.add(spec.Name, corev1.ContainerStateWaiting{
		Reason:  "ImagePullBackOff",
		Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", spec.Image, r.pullErrors[key]),
	}, now.Add(r.timing.Resync))
	r.wakeAt(until)
	return true
}

// failures are why containers cannot be started, by name. What one sync finds
// is published by a later one.
type failures map[string]failure

type failure struct {
	shown corev1.ContainerStateWaiting
	// next replaces shown at nextAt, unless that is zero.
	next   corev1.ContainerStateWaiting
	nextAt time.Time
}

func (f failures) add(name string, why corev1.ContainerStateWaiting, at time.Time) {
	known := f[name]
	if known.shown == why || (known.next == why && !known.nextAt.IsZero()) {
		return
	}
	known.next, known.nextAt = why, at
	f[name] = known
}

// show makes visible what is due.
func (f failures) show(now time.Time) {
	for name, known := range f {
		if !known.nextAt.IsZero() && !now.Before(known.nextAt) {
			f[name] = failure{shown: known.next}
		}
	}
}

// get returns the failure to be published, if any.
func (f failures) get(name string) (corev1.ContainerStateWaiting, bool) {
	shown := f[name].shown
	return shown, shown.Reason != ""
}

// backoffs are waits that double with each failure, by key. The rules are those
// of the kubelet, which forgets a failure that is older than ten minutes.
type backoffs struct {
	first, max time.Duration
	entries    map[string]backoff
}

type backoff struct {
	wait time.Duration
	at   time.Time
}

const forgetFailuresAfter = 10 * time.Minute

// until returns when the wait that counts from a moment is over, and false if
// nothing is to be waited for.
func (b backoffs) until(key string, from, now time.Time) (time.Time, bool) {
	entry, ok := b.entries[key]
	if !ok || from.Sub(entry.at) > forgetFailuresAfter {
		return time.Time{}, false
	}
	end := from.Add(entry.wait)
	return end, now.Before(end)
}

// fail makes the next wait longer. From is when the failure happened.
func (b backoffs) fail(key string, from, now time.Time) {
	entry, ok := b.entries[key]
	if !ok || from.Sub(entry.at) > forgetFailuresAfter {
		b.entries[key] = backoff{wait: b.first, at: now}
		return
	}
	b.entries[key] = backoff{wait: min(2*entry.wait, b.max), at: now}
}
