// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Standing is where the pods of a workload stand, as its conditions tell it.
type Standing struct {
	// Replicas is how many pods the spec asks for, and Wanted how many are to be there now.
	// Existing is how many there are; Leaving ones do not count, and are to go. Withheld is
	// how many of the missing ones are made when others have started.
	Replicas, Wanted, Existing, Leaving, Withheld int
	// Available pods serve. Pending ones are to be updated to Revision; Keeper keeps others,
	// and Vacant nodes without a pod. It is the partition, if it is empty.
	Available, Pending, Kept, Vacant int
	Revision, Keeper                 string
	// OnDelete: users update pods by deleting them. Paused: no pod may begin its update.
	OnDelete, Paused bool
	// Claims counts those that follow their templates.
	Claims workload.ClaimCounts
}

// Progress says in one word and a sentence how far a workload has come.
type Progress struct {
	// Ready: everything is as wanted. Moving: the operator is at work on it.
	Ready, Moving   bool
	Reason, Message string
}

// Progress returns how far a workload has come by a plan: the first that is true of what is to
// be done before it is ready.
func (r *Round) Progress(s Standing) Progress {
	isServing := s.Available >= s.Replicas
	switch {
	case s.Existing != s.Wanted || s.Leaving > 0:
		return moving(appsv1beta1.ReasonScaling, inplace.Scaling(s.Existing, s.Wanted, s.Leaving)+workload.WithheldMessage(s.Withheld))
	case s.Pending > 0 && s.OnDelete && isServing:
		return Progress{Ready: true, Reason: appsv1beta1.ReasonOnDelete, Message: inplace.WhenDeleted(s.Pending)}
	case s.Pending > 0 && s.OnDelete:
		return r.becomingAvailable(s)
	case s.Pending > 0 && s.Paused:
		return Progress{Reason: appsv1beta1.ReasonPaused, Message: "paused with " + inplace.Pods(s.Pending) + " to update"}
	case s.Pending > 0:
		return moving(appsv1beta1.ReasonUpdating, fmt.Sprintf("%d of %d pods are to be updated to revision %s", s.Pending, s.Replicas-s.Kept, s.Revision)+
			workload.Undrained(r.Plan)+workload.FirstBlocker(r.Plan))
	case !isServing:
		return r.becomingAvailable(s)
	case s.Claims.Moving > 0:
		return moving(appsv1beta1.ReasonUpdatingClaims,
			fmt.Sprintf("%d claims are on their way to their templates, %d are blocked", s.Claims.Moving, s.Claims.Blocked))
	case s.Claims.Blocked > 0:
		return Progress{Reason: appsv1beta1.ReasonClaimsBlocked,
			Message: fmt.Sprintf("%d claims do not follow their templates: %s", s.Claims.Blocked, s.Claims.Message)}
	case s.Kept > 0 || s.Vacant > 0:
		return Progress{Ready: true, Reason: appsv1beta1.ReasonPartitionReached, Message: cmp.Or(s.Keeper, "partition") + " keeps " + s.kept()}
	default:
		return Progress{Ready: true, Reason: appsv1beta1.ReasonAvailable, Message: inplace.PodsThat(s.Available, "is", "are") + " available"}
	}
}

// kept says what the partition keeps.
func (s Standing) kept() string {
	var words []string
	if s.Kept > 0 {
		words = append(words, inplace.PodsThat(s.Kept, "at its revision", "at their revision"))
	}
	if s.Vacant > 0 {
		words = append(words, fmt.Sprintf("%d of the nodes without a pod", s.Vacant))
	}
	return strings.Join(words, ", ")
}

func moving(reason, message string) Progress {
	return Progress{Moving: true, Reason: reason, Message: message}
}

func (r *Round) becomingAvailable(s Standing) Progress {
	return moving(appsv1beta1.ReasonUpdating, fmt.Sprintf("%d of %d pods are available", s.Available, s.Replicas)+workload.FirstBlocker(r.Plan))
}

// Stall returns what needs a user: a spec that cannot be carried out, a write that the server
// refuses, or a pod that is stuck. It is not known where failure passes by itself: what was
// reported stands.
func (r *Round) Stall(failure error) (stall workload.Stall, known bool) {
	if stall, known = workload.StallBeforePlan(failure); known || failure != nil {
		return stall, known
	}
	return workload.FindStall(r.Plan, slices.Concat(r.Updating.Errs, r.Scaling.Errs)), true
}

// FailedUpdates are what keeps pods from their updates.
func (r *Round) FailedUpdates() []error {
	return slices.Concat(r.Updating.Errs, workload.Denials(r.Plan))
}
