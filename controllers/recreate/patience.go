// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// This file is about how often the objects of a claim that waits are read. The controller
// watches the claim and its pod, but not the volumes and snapshots: they are read again and
// again, and the more rarely the longer the claim has waited. As a driver takes its time
// for a hundred claims, the API server would have thousands of requests per minute to answer.

// patience is the part of the time that a claim has waited after which its objects are
// read again, and maxPollPeriod the most that is.
const (
	patience      = 4
	maxPollPeriod = 30 * time.Second
)

// waiting is a claim that waits, as it was found.
type waiting struct {
	// seen is what the caches showed then: if they show something else, the objects are read
	// at once.
	seen   string
	result Result
	// since is since when it waits for the same reason.
	since time.Time
}

type waitingKey struct {
	owner types.UID
	claim string
}

// lastWait returns the result of the last look at a claim, if nothing has changed in the
// caches and its objects are not to be read yet.
func (s *Session) lastWait(claim Claim, seen string) (Result, bool) {
	known, ok := s.recent.Get(waitingKey{s.owner.GetUID(), claim.Template.Name})
	last, isOne := known.(waiting)
	if !ok || !isOne || last.seen != seen || !s.now.Before(last.result.Again) {
		return Result{}, false
	}
	return last.result, true
}

// rememberWait notes that a claim waits, and returns the result with when its objects are
// read again.
func (s *Session) rememberWait(claim Claim, seen string, result Result) Result {
	key := waitingKey{s.owner.GetUID(), claim.Template.Name}
	if result.Action != recreate.Wait || result.Watched {
		s.recent.Delete(key)
		return result
	}
	since := s.now
	known, _ := s.recent.Get(key)
	if last, isOne := known.(waiting); isOne && last.result.Reason == result.Reason {
		since = last.since
	}
	period := min(s.now.Sub(since)/patience, maxPollPeriod)
	if at := s.now.Add(period); at.After(result.Again) && (result.Until.IsZero() || at.Before(result.Until)) {
		result.Again = at
	}
	s.recent.Set(key, waiting{seen, result, since}, time.Hour)
	return result
}

// seen says what the caches show of a claim: what its next step depends on, but for what
// is read from the API server only.
func (s *Session) seen(claim Claim, users []string) string {
	parts := []string{fmt.Sprint(s.owner.GetGeneration()), claim.Failed, fmt.Sprint(claim.Foreign), strings.Join(slices.Sorted(slices.Values(users)), ",")}
	if claim.Found != nil {
		parts = append(parts, "claim", string(claim.Found.UID), claim.Found.ResourceVersion)
	}
	if claim.Pod != nil {
		parts = append(parts, "pod", string(claim.Pod.UID), claim.Pod.ResourceVersion)
	}
	return strings.Join(parts, "/")
}

// stoppedSince returns since when nothing has used the volume of a claim, as its record says;
// nil if that is not so.
func stoppedSince(claim Claim) *metav1.Time {
	if claim.Found == nil {
		return nil
	}
	if attempt := volumes.RecordOf(claim.Found).Recreate; attempt != nil {
		return attempt.StoppedTimestamp
	}
	return nil
}

// isStopped reports whether the pod of a claim has been stopped for its recreation. Another
// pod may come to use the claim, which the cache of all pods tells: so that is looked at
// all the time.
func isStopped(claim Claim) bool {
	if claim.Found == nil {
		return false
	}
	attempt := volumes.RecordOf(claim.Found).Recreate
	return attempt != nil && attempt.Pod != ""
}
