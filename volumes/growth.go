// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// grow returns the next step of the claim's size. It never asks for less than the
// volume has: a request that is larger than the template while the volume is large
// enough is left to those who made it.
func (f Facts) grow(now time.Time) Step {
	want, asked := sizeOf(f.Template.Spec.Resources.Requests), sizeOf(f.Claim.Spec.Resources.Requests)
	capacity := sizeOf(f.Claim.Status.Capacity)
	switch {
	case capacity.Cmp(want) >= 0:
		return f.settled()
	case f.Claim.Status.Phase != corev1.ClaimBound:
		if asked.Cmp(want) >= 0 {
			return f.settled() // it comes up as large
		}
		return f.step(Waiting, ReasonClaimNotBound, "")
	case asked.Cmp(want) < 0:
		return f.ask(want, now)
	case asked.Cmp(want) > 0 && f.mayLower(asked):
		return f.resized(want)
	default:
		return f.expansion(want, asked, now)
	}
}

// ask returns the step of a claim that is to ask for more.
func (f Facts) ask(want resource.Quantity, now time.Time) Step {
	name := volumehelpers.GetPersistentVolumeClaimClass(f.Claim)
	switch {
	case name == "":
		return f.step(Blocked, ReasonExpansionNotAllowed, "it has no storage class, and cannot grow to %s: %s", want.String(), wayOut)
	case f.ClassesUnknown:
	case f.StorageClass == nil:
		return f.lookAgain(now, ReasonStorageClassMissing, "its storage class %s does not exist, so it cannot grow to %s: "+
			"create the class, with allowVolumeExpansion: true", name, want.String())
	case !ptr.Deref(f.StorageClass.AllowVolumeExpansion, false):
		return f.lookAgain(now, ReasonExpansionNotAllowed, "its storage class %s does not allow it to grow to %s: "+
			"set allowVolumeExpansion: true if its driver can; %s", name, want.String(), wayOut)
	}
	record := RecordOf(f.Claim)
	if f.isUsed() && f.growsDetached(record, now) && detachedFor(record, want).IsZero() {
		return f.inUse(want, want, now)
	}
	return f.resized(want)
}

const wayOut = "or revert the template; images and everything else are rolled out meanwhile"

func (f Facts) resized(want resource.Quantity) Step {
	return Step{State: Changing, Claim: f.Claim, Patch: Patch{Size: &want}}
}

// mayLower reports whether a request that is larger than the template may be
// lowered to it: it was our own, or can come to nothing.
func (f Facts) mayLower(asked resource.Quantity) bool {
	if f.isExpandedInController() {
		return false // the volume is as large already
	}
	return f.isOwn(asked) || f.isInfeasible(asked)
}

// isOwn reports whether a request was made by us.
func (f Facts) isOwn(asked resource.Quantity) bool {
	return asks(RecordOf(f.Claim), asked)
}

// expansion returns the step of a claim that has asked for what it needs, or more.
func (f Facts) expansion(want, asked resource.Quantity, now time.Time) Step {
	if step := f.expansionTrouble(want, asked, now); step != nil {
		return *step
	}
	record := RecordOf(f.Claim)
	since := f.expandingSince(record, asked)
	switch {
	case f.awaitsRemount(asked, now):
		return f.detach(want, asked, ReasonVolumeNotRemounted, fmt.Sprintf("the file system has not grown in %s while it is mounted", remountPeriod), now)
	case f.isUsed() && !f.isExpandedInController() && f.growsDetached(record, now) && !now.Before(since.Add(silentPeriod)):
		return f.inUse(want, asked, now)
	case !f.isOwn(asked):
		step := f.step(UnderWay, ReasonClaimExpanding, "it grows from %s to %s, as another client has asked", f.capacity(), asked.String())
		step.Since, step.Foreign = since, true
		return step
	case since.IsZero() || !now.Before(since.Add(overduePeriod)):
		step := f.step(Blocked, ReasonClaimOverdue, "it has asked for %s, and nothing is heard of it: see the events of the claim, and whether the "+
			"external-resizer of its driver runs", asked.String())
		step.Since = since
		return step
	}
	step := f.step(UnderWay, ReasonClaimExpanding, "it grows from %s to %s", f.capacity(), asked.String())
	step.Since, step.Until = since, since.Add(overduePeriod)
	if at := f.losesPatience(record, since, now); at.After(now) && at.Before(step.Until) {
		step.Until = at
	}
	return step
}

// losesPatience returns when a pod may have to go for an expansion that is under way;
// zero if time alone does not tell.
func (f Facts) losesPatience(record Record, since, now time.Time) time.Time {
	pending := f.condition(corev1.PersistentVolumeClaimFileSystemResizePending)
	switch {
	case !f.isUsed():
		return time.Time{}
	case pending != nil:
		return later(pending.LastTransitionTime.Time, f.Pod.Since).Add(remountPeriod)
	case f.growsDetached(record, now):
		return since.Add(silentPeriod)
	default:
		return time.Time{}
	}
}

// isUsed reports whether a pod uses the claim.
func (f Facts) isUsed() bool { return f.Pod != nil }

// expandingSince returns since when the claim has asked for a size; zero if nothing
// tells.
func (f Facts) expandingSince(record Record, asked resource.Quantity) time.Time {
	since := time.Time{}
	if asks(record, asked) {
		since = record.SizeTimestamp.Time
	}
	if resizing := f.condition(corev1.PersistentVolumeClaimResizing); resizing != nil && since.IsZero() {
		since = resizing.LastTransitionTime.Time // the sidecar sets it again at every try
	}
	if pending := f.condition(corev1.PersistentVolumeClaimFileSystemResizePending); pending != nil && !f.isRepeated() {
		since = pending.LastTransitionTime.Time
	}
	return since
}

// isRepeated reports whether the driver is asked again for a size that the volume has
// already. The sidecar does so for ever where an earlier, smaller request was rounded up
// to what is asked now, and every time the claim waits for its node as if it grew.
func (f Facts) isRepeated() bool {
	allocated, has := f.Claim.Status.AllocatedResources[corev1.ResourceStorage]
	return has && isAtLeast(sizeOf(f.Claim.Status.Capacity), allocated)
}

// isExpandedInController reports whether the volume has grown, and the file system
// on it is to follow.
func (f Facts) isExpandedInController() bool {
	switch f.Claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return true
	case corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible:
		return false
	default:
		return f.condition(corev1.PersistentVolumeClaimFileSystemResizePending) != nil
	}
}

func (f Facts) capacity() string {
	capacity := sizeOf(f.Claim.Status.Capacity)
	return capacity.String()
}

func (f Facts) settled() Step { return Step{State: Settled, Claim: f.Claim} }

// step returns a step whose message names the claim.
func (f Facts) step(state State, reason, format string, args ...any) Step {
	return Step{
		State: state, Claim: f.Claim, Reason: reason,
		Message: strings.TrimSpace(fmt.Sprintf("claim %s: %s", f.Claim.Name, fmt.Sprintf(format, args...))),
	}
}
