// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Recreation is what is known of recreating a claim, see package recreate.
type Recreation struct {
	// State is Blocked where it cannot be done, Changing where it is to begin while the
	// pod runs, Detaching where the pod is to be stopped for it, UnderWay while it is done;
	// empty where the new claim has its volume.
	State State
	// Reason and Message say why.
	Reason, Message string
	// Attempt is to be noted on the claim for Changing, and for Detaching before its pod
	// is stopped.
	Attempt *appsv1beta1.VolumeClaimRecreateState
}

// recreation returns the step of a claim that is, or is to be, recreated; nil if that
// leaves the claim to follow its template.
func (f Facts) recreation(now time.Time) *Step {
	step := Step{}
	switch r := f.Recreation; r.State {
	case Detaching:
		step = f.beginRecreation(Detaching)
	case UnderWay:
		step = f.step(UnderWay, r.Reason, "%s", r.Message)
		if attempt := RecordOf(f.Claim).Recreate; attempt != nil {
			step.Since = attempt.StartTimestamp.Time
		}
	case Blocked:
		step = f.lookAgain(now, r.Reason, "%s", r.Message)
	case Changing:
		step = f.beginRecreation(Changing)
	case Settled, Waiting:
		return nil
	default:
		return nil
	}
	step.Recreates = step.State != Blocked
	return &step
}

// beginRecreation returns the step that notes an attempt on the claim, and has its pod
// stopped if it is Detaching.
func (f Facts) beginRecreation(state State) Step {
	r, record := f.Recreation, RecordOf(f.Claim)
	switch {
	case f.Pod == nil:
		return f.step(Waiting, r.Reason, "%s, when its pod is there to be stopped", r.Message)
	case f.WhyNotDetached != "":
		return f.step(Blocked, ReasonVolumeInUse, "it is not recreated, which needs its pod stopped: podUpdatePolicy InPlaceOnly keeps that; allow recreation with InPlaceIfPossible")
	}
	step := f.step(state, r.Reason, "%s", r.Message)
	record.Recreate = r.Attempt
	step.Patch.Record = record
	return step
}
