// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/resize"
)

// ResizePatch returns the strategic merge patch of pods/resize that carries out a
// Resize step.
func ResizePatch(pod *corev1.Pod, step Step) ([]byte, error) {
	if len(step.Change.Grow) > 0 {
		return step.Change.Grow.Patch(pod)
	}
	return step.Change.Resize.Patch(pod)
}

// TrialResize returns the patch of pods/resize to all the sizes that a step leads
// to, for a dry run, and whether there are any.
func TrialResize(pod *corev1.Pod, step Step) (body []byte, resizes bool, err error) {
	all := step.Change.Resizes()
	if len(all) == 0 {
		return nil, false, nil
	}
	body, err = all.Patch(pod)
	return body, true, err
}

// WithAnswer returns a Resize step whose record says what the API server made of the
// sizes, where that is something else than it was asked for. A step without a record
// gets one if there is something to say.
func WithAnswer(pod *corev1.Pod, step Step, answer *corev1.Pod, now time.Time) Step {
	asked, stored := resize.Amounts{}, resize.Amounts{}
	written := step.Change.Resize
	if len(step.Change.Grow) > 0 {
		written = step.Change.Grow
	}
	live := resize.AmountsOf(&answer.Spec)
	for field, size := range written.Amounts() {
		if kept, ok := live[field]; ok && kept.Cmp(size) != 0 {
			asked[field], stored[field] = size, kept
		}
	}
	if len(asked) == 0 {
		return step
	}
	if step.Record == nil {
		o := observedOf(pod, now)
		step.Record = newState(o, Change{Shrink: o.shrinks()}, RevisionOf(pod), now)
		step.Change, step.LeadsToPatch = Change{}, false
	}
	record := *step.Record
	record.Resized = resize.FromRequirements(record.Resized, pod).With(stored).Requirements()
	record.ResizedFrom = resize.FromRequirements(record.ResizedFrom, pod).With(asked).Requirements()
	step.Record = &record
	return step
}
