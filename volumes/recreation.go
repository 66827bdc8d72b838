// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Recreation is what is known of making a claim anew, see package recreate.
type Recreation struct {
	// State is Blocked where it cannot be done, Detaching where the pod is to be stopped
	// for it, UnderWay while it is done; empty where the new claim has its volume.
	State State
	// Reason and Message say why.
	Reason, Message string
	// Attempt is to be noted on the claim before its pod is stopped.
	Attempt *appsv1beta1.VolumeClaimRecreateState
}

// recreation returns the step of a claim that is, or is to be, made anew; nil if that
// leaves the claim to follow its template.
func (f Facts) recreation(now time.Time) *Step {
	step := Step{}
	switch r := f.Recreation; r.State {
	case Detaching:
		step = f.stopForRecreation()
	case UnderWay:
		step = f.step(UnderWay, r.Reason, "%s", r.Message)
		if attempt := RecordOf(f.Claim).Recreate; attempt != nil {
			step.Since = attempt.StartTimestamp.Time
		}
	case Blocked:
		step = f.lookAgain(now, r.Reason, "%s", r.Message)
	case Settled, Waiting, Changing:
		return nil
	default:
		return nil
	}
	return &step
}

// stopForRecreation returns the step that has the pod of a claim stopped.
func (f Facts) stopForRecreation() Step {
	r, record := f.Recreation, RecordOf(f.Claim)
	switch {
	case f.Pod == nil:
		return f.step(Waiting, r.Reason, "%s, when its pod is there to be stopped", r.Message)
	case f.WhyNotDetached != "":
		return f.step(Blocked, r.Reason, "%s, which needs its pod stopped: %s", r.Message, f.WhyNotDetached)
	}
	step := f.step(Detaching, r.Reason, "%s: its pod is stopped for that", r.Message)
	record.Recreate = r.Attempt
	step.Patch.Record = record
	return step
}
