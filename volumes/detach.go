// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// inUse returns the step of a claim whose driver does not expand volumes in use.
func (f Facts) inUse(want, asked resource.Quantity, now time.Time) Step {
	if f.isUsed() {
		return f.detach(want, asked, ReasonVolumeInUse, "its driver does not expand volumes in use", now)
	}
	step := f.step(UnderWay, ReasonClaimExpanding, "it grows from %s to %s while no pod uses it", f.capacity(), asked.String())
	step.Since = detachedFor(RecordOf(f.Claim), asked)
	return step
}

// detach returns the step of a claim that needs its pod gone, for a size that is
// wanted by the template or was asked for by us. It is done once for each size: what
// does not help is not done again. A pod that came back early, as it does when a
// partition or a rollback wants it back, has not tried that.
func (f Facts) detach(want, asked resource.Quantity, reason, why string, now time.Time) Step {
	record, size := RecordOf(f.Claim), asked.String()
	since := detachedFor(record, asked)
	switch {
	case asked.Cmp(want) != 0 && !f.isOwn(asked):
		return f.step(Blocked, reason, "%s, and another client has asked for %s: delete its pod for that, or set the request to the %s of the template",
			why, size, want.String())
	case !since.IsZero() && f.Pod.UID != record.DetachedPod && (f.hadItsTime(since) || now.Before(since.Add(detachPeriod))):
		step := f.step(Blocked, reason, "%s, and it did not grow to %s in the time that its pod was gone for it: "+
			"see the events of the claim; scale the pod away for as long as it takes", why, size)
		step.Since = since
		if !f.hadItsTime(since) {
			step.Until = since.Add(detachPeriod)
		}
		return step
	case f.WhyNotDetached != "":
		return f.step(Blocked, reason, "%s, so it does not grow to %s: %s", why, size, f.WhyNotDetached)
	}
	step := f.step(Detaching, reason, "%s: its pod is recreated for it to grow to %s", why, size)
	step.Patch.Record = record
	if isFresh := f.Pod.UID == record.DetachedPod && now.Before(since.Add(promptPeriod)); isFresh {
		return step // it was noted a moment ago, and the pod is still there
	}
	stamp := metav1.NewTime(now).Rfc3339Copy()
	record.Size, record.SizeTimestamp = &asked, stamp
	record.DetachTimestamp, record.DetachedPod = &stamp, f.Pod.UID
	if reason == ReasonVolumeInUse {
		record.InUseTimestamp = ptr.To(stamp)
	}
	step.Patch.Record = record
	return step
}

// hadItsTime reports whether a volume had all its time to grow before the pod that
// uses it was made. One that a node only had to unmount needs hardly any.
func (f Facts) hadItsTime(since time.Time) bool {
	isOfNode := ptr.Deref(RecordOf(f.Claim).InUseTimestamp, metav1.Time{}).Time.Before(since)
	return isOfNode || !f.Pod.Since.Before(since.Add(detachPeriod-clockSkew))
}

// awaitsRemount reports whether a volume has grown, and its pod has run on it for
// long without the file system following.
func (f Facts) awaitsRemount(asked resource.Quantity, now time.Time) bool {
	pending := f.condition(corev1.PersistentVolumeClaimFileSystemResizePending)
	return f.isUsed() && f.Pod.Ready && pending != nil && f.isAllocated(asked) &&
		f.Claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizePending &&
		!now.Before(later(pending.LastTransitionTime.Time, f.Pod.Since).Add(remountPeriod))
}

// isAllocated reports whether the driver works on what the claim asks for, and not on
// an earlier request.
func (f Facts) isAllocated(asked resource.Quantity) bool {
	allocated := sizeOf(f.Claim.Status.AllocatedResources)
	return allocated.Cmp(asked) == 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// growsDetached reports whether the driver is known not to expand volumes in use.
func (f Facts) growsDetached(record Record, now time.Time) bool {
	since := later(f.InUseSince, ptr.Deref(record.InUseTimestamp, metav1.Time{}).Time)
	return !since.IsZero() && now.Before(since.Add(inUsePeriod))
}

// GrewDetached returns when the driver of a claim said that it does not expand
// volumes in use, if the volume has grown with its pod gone; zero if not. A driver
// says the same of a volume that is in trouble: that others need their pods gone as
// well is believed when it has helped one.
func GrewDetached(record Record, capacity resource.Quantity) time.Time {
	if record.Size == nil || record.DetachTimestamp == nil || !isAtLeast(capacity, *record.Size) {
		return time.Time{}
	}
	return ptr.Deref(record.InUseTimestamp, metav1.Time{}).Time
}

// AwaitDetached tells until when a pod that was deleted for the sake of a claim is
// kept away; zero if it may come back: the volume has grown, or cannot, or has had
// its time. The claim of a pod that is on its way out is not awaited longer than it
// would be if the pod were gone.
func AwaitDetached(f Facts, now time.Time) time.Time {
	if f.Claim == nil || f.Controller != "" || f.Claim.DeletionTimestamp != nil || f.isUsed() && !f.Pod.Leaving {
		return time.Time{}
	}
	f.Pod = nil
	want, record := sizeOf(f.Template.Spec.Resources.Requests), RecordOf(f.Claim)
	if asked := sizeOf(f.Claim.Spec.Resources.Requests); f.isExpandedInController() && !isAtLeast(want, asked) {
		want = asked // it is more than the template says that has to be mounted again
	}
	since := detachedFor(record, want)
	if since.IsZero() || isAtLeast(sizeOf(f.Claim.Status.Capacity), want) {
		return time.Time{}
	}
	until := since.Add(detachPeriod)
	if f.isExpandedInController() {
		if !ptr.Deref(record.InUseTimestamp, metav1.Time{}).Time.Before(since) {
			return time.Time{}
		}
		// It was the node that needed it. Nothing tells when the node has unmounted
		// the volume.
		until = since.Add(unmountPeriod)
	}
	if !now.Before(until) || Next(f, now).State == Blocked {
		return time.Time{}
	}
	return until
}

// IsAway reports whether the pod of a claim may be away for its sake: whoever keeps
// claims only as long as their pods keeps this one.
func IsAway(claim *corev1.PersistentVolumeClaim, now time.Time) bool {
	since := ptr.Deref(RecordOf(claim).DetachTimestamp, metav1.Time{}).Time
	return !since.IsZero() && now.Before(since.Add(2*detachPeriod))
}
