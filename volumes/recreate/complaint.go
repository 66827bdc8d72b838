// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"regexp"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long a driver must repeat an error until the attempt ends early.
const (
	// complaintPeriod is how long ago the driver must have said the same first. By then
	// its sidecar has tried about eight times.
	complaintPeriod = 5 * time.Minute
	// repeatPeriod is how long the driver must have gone on saying it, where each time is
	// known.
	repeatPeriod = 2 * time.Minute
)

// complaint is an error that a driver reports of a snapshot or a volume.
type complaint struct {
	// words are the error; empty if there is none.
	words string
	// first and last are when the driver reported these words.
	first, last time.Time
}

// passing matches errors that end by themselves: another call is under way, or the driver
// cannot be reached.
//
// Source: https://github.com/container-storage-interface/spec/blob/master/spec.md#error-scheme
var passing = regexp.MustCompile(`code = (Unavailable|DeadlineExceeded|Aborted|Canceled)\b`)

// coded matches errors of drivers.
var coded = regexp.MustCompile(`code = \w+`)

// ofSnapshot returns what the driver reports of a snapshot. The time of the error is that
// of its first occurrence: external-snapshotter writes the error again only if its words
// have changed.
func ofSnapshot(snapshot *snapshotv1.VolumeSnapshot) complaint {
	said := snapshotError(snapshot)
	// It leaves the error of an earlier call until the snapshot is ready, also when the driver has
	// cut it since; and an error without a code is one of its own writes, which it repeats.
	if said == "" || IsReady(snapshot) || snapshot.Status.Error.Time == nil || snapshot.Status.CreationTime != nil || !coded.MatchString(said) {
		return complaint{words: said}
	}
	at := snapshot.Status.Error.Time.Time
	return complaint{words: said, first: at, last: at.Add(repeatPeriod)}
}

// ProvisioningFailedEvent is the reason of the events of a claim in which
// external-provisioner, and the controllers of Kubernetes, report why it has no volume.
const ProvisioningFailedEvent = "ProvisioningFailed"

// ofVolume returns what the driver reports of the volume of a claim, by the events of the
// claim: external-provisioner writes it nowhere else.
func ofVolume(claim *corev1.PersistentVolumeClaim, events []corev1.Event) complaint {
	var said []complaint
	for i := range events {
		if event := &events[i]; isFailure(event, claim.UID) {
			said = append(said, ofEvent(event))
		}
	}
	latest := complaint{}
	for _, one := range said {
		if one.last.After(latest.last) {
			latest = one
		}
	}
	for _, one := range said { // a sidecar that was restarted began a new one
		if one.words == latest.words && one.first.Before(latest.first) {
			latest.first = one.first
		}
	}
	for _, one := range said { // it has said something else since
		if one.words != latest.words && one.last.After(latest.first) {
			latest.first = one.last
		}
	}
	return latest
}

// combined begins the words of an event in which a recorder keeps the latest of many others.
const combined = "(combined from similar events)"

// ofEvent returns what an event reports, of either API of events.
func ofEvent(event *corev1.Event) complaint {
	c := complaint{event.Message, event.FirstTimestamp.Time, event.LastTimestamp.Time}
	if c.first.IsZero() {
		c.first = event.EventTime.Time
	}
	if event.Series != nil && event.Series.LastObservedTime.After(c.last) {
		c.last = event.Series.LastObservedTime.Time
	}
	if c.last.IsZero() {
		c.last = c.first
	}
	if strings.HasPrefix(c.words, combined) {
		c.first = c.last
	}
	return c
}

func isFailure(event *corev1.Event, claim types.UID) bool {
	return event.Reason == ProvisioningFailedEvent && event.InvolvedObject.UID == claim
}

// lasts reports whether the driver has repeated the error for so long that waiting does not
// help.
func (c complaint) lasts(now time.Time) bool {
	return c.words != "" && !c.first.IsZero() && !passing.MatchString(c.words) &&
		!now.Before(c.first.Add(complaintPeriod)) && !c.last.Before(c.first.Add(repeatPeriod))
}

// said returns the error as the end of a sentence; empty if there is none.
func (c complaint) said() string {
	if c.words == "" {
		return ""
	}
	return ", and the driver says: " + c.words
}

// fails returns the failure of an attempt whose driver repeats an error; nil if it does
// not. what is what the driver was asked for.
func (c complaint) fails(a Attempt, what string, now time.Time) *Failure {
	if !c.lasts(now) {
		return nil
	}
	return &Failure{
		Key: a.Key, Reason: ReasonDriverFails, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "for " + complaintPeriod.String() + " its driver has failed to " + what + ", always with the same words: " + c.words,
	}
}

// failsToSave is fails for a snapshot.
func failsToSave(a Attempt, snapshot *snapshotv1.VolumeSnapshot, now time.Time) *Failure {
	if snapshot == nil {
		return nil
	}
	return ofSnapshot(snapshot).fails(a, "take its snapshot "+snapshot.Name, now)
}

// WaitsForVolume returns the claim that waits for a volume, and whose events say what the
// driver reports of it: that of the trial, or the new one. It is nil if neither waits.
func (f Facts) WaitsForVolume() *corev1.PersistentVolumeClaim {
	for _, claim := range []*corev1.PersistentVolumeClaim{f.TrialClaim, f.Claim} {
		if claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase != corev1.ClaimBound {
			return claim
		}
	}
	return nil
}

// whyNoVolume returns what the driver reports of the volume that is waited for, as the end
// of a sentence.
func (f Facts) whyNoVolume() string {
	if said := f.ofNewVolume().said(); said != "" {
		return said
	}
	return "; its events say why"
}

// ofNewVolume returns what the driver reports of the volume that is waited for.
func (f Facts) ofNewVolume() complaint {
	claim := f.WaitsForVolume()
	if claim == nil {
		return complaint{}
	}
	return ofVolume(claim, f.Events)
}
