// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// modify returns the next step of the claim's VolumeAttributesClass. A template that
// names none leaves it as it is: Kubernetes does not take it off a claim.
//
// Source: KEP-3751.
func (f Facts) modify(now time.Time) Step {
	want := attributesClass(f.Template)
	if want == "" {
		return f.settled()
	}
	if attributesClass(f.Claim) != want {
		// It is not asked for before it exists: the sidecar would not notice when it
		// comes.
		if f.LacksAttributesClass {
			return f.lookAgain(now, ReasonAttributesClassMissing, "VolumeAttributesClass %s does not exist: create it, or revert the template", want)
		}
		return Step{State: Changing, Claim: f.Claim, Patch: Patch{AttributesClass: want}}
	}
	return f.modification(want, now)
}

// modification returns the step of a claim that has asked for the class that it
// needs.
func (f Facts) modification(want string, now time.Time) Step {
	status := f.Claim.Status.ModifyVolumeStatus
	if ptr.Deref(f.Claim.Status.CurrentVolumeAttributesClassName, "") == want && status == nil {
		return f.settled()
	}
	if f.Claim.Status.Phase != corev1.ClaimBound {
		return f.settled() // its volume is made with the class
	}
	problem := f.condition(corev1.PersistentVolumeClaimVolumeModifyVolumeError)
	if status == nil || status.TargetVolumeAttributesClassName != want {
		problem = nil // of an earlier request
	}
	since := f.modifyingSince(want)
	switch {
	case status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumeInfeasible && status.TargetVolumeAttributesClassName == want:
		words := "see the events of the claim" // the condition goes missing when the claim grows as well
		if problem != nil {
			words = driverWords(problem.Message)
		}
		step := f.step(Blocked, ReasonModificationInfeasible, "its driver will not give it the attributes of VolumeAttributesClass %s: %s; "+
			"name another class, or revert the template", want, words)
		step.Since = since
		return step
	case status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumePending && f.LacksAttributesClass:
		return f.step(Blocked, ReasonAttributesClassMissing, "VolumeAttributesClass %s does not exist; when it does, name it again, "+
			"since the external-resizer does not look again by itself", want)
	case problem != nil:
		step := f.step(Blocked, ReasonModificationFailed, "its driver fails to give it the attributes of VolumeAttributesClass %s, and is asked again: %s",
			want, driverWords(problem.Message))
		step.Since = since
		return step
	case since.IsZero() || !now.Before(since.Add(overduePeriod)):
		step := f.step(Blocked, ReasonClaimOverdue, "it has asked for VolumeAttributesClass %s, and nothing is heard of it: see the events of the claim, and "+
			"whether %sits driver can modify volumes and its external-resizer runs", want, f.existence())
		step.Since = since
		return step
	}
	step := f.step(UnderWay, ReasonClaimModifying, "it gets the attributes of VolumeAttributesClass %s", want)
	step.Since, step.Until = since, since.Add(overduePeriod)
	return step
}

// existence asks whether the class exists, if that is not known.
func (f Facts) existence() string {
	if f.ClassesUnknown {
		return "the class exists, "
	}
	return ""
}

// modifyingSince returns since when the claim has asked for a class; zero if nothing
// tells.
func (f Facts) modifyingSince(want string) time.Time {
	if record := RecordOf(f.Claim); record.AttributesClass == want {
		return record.AttributesClassTimestamp.Time
	}
	if condition := f.condition(corev1.PersistentVolumeClaimVolumeModifyingVolume); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}
