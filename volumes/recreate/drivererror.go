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

// When a driver counts as failing, and the attempt ends before its timeout.
const (
	// errorPeriod is how long ago the driver must have reported the same error first. By
	// then its sidecar has tried about eight times.
	errorPeriod = 5 * time.Minute
	// repeatPeriod is how much later the driver must have reported it last, where that is
	// known.
	repeatPeriod = 2 * time.Minute
)

// driverError is an error that a driver reports of a snapshot or a volume.
type driverError struct {
	// message is empty if there is no error.
	message string
	// first and last are when the driver reported it.
	first, last time.Time
}

var (
	// isTransient matches errors that end by themselves: another call is under way, or the
	// driver cannot be reached.
	//
	// Source: https://github.com/container-storage-interface/spec/blob/master/spec.md#error-scheme
	isTransient = regexp.MustCompile(`code = (Unavailable|DeadlineExceeded|Aborted|Canceled)\b`)
	// hasCode matches errors of drivers. Those of a sidecar's own writes have no code.
	hasCode = regexp.MustCompile(`code = \w+`)
)

// snapshotDriverError returns the error of a snapshot.
//
// external-snapshotter keeps the error of one call in the status until the snapshot is
// ready. So an error with a creationTime is over: the driver has cut the snapshot since, and
// is uploading it. The time of an error is that of its first occurrence: external-snapshotter
// writes the error again only if its message has changed.
func snapshotDriverError(snapshot *snapshotv1.VolumeSnapshot) driverError {
	found := driverError{message: snapshotError(snapshot)}
	if found.message == "" || !hasCode.MatchString(found.message) || snapshot.Status.Error.Time == nil || snapshot.Status.CreationTime != nil {
		return found
	}
	found.first = snapshot.Status.Error.Time.Time
	found.last = found.first.Add(repeatPeriod)
	return found
}

// ProvisioningFailedEvent is the reason of the events of a claim in which
// external-provisioner reports why the claim has no volume.
const ProvisioningFailedEvent = "ProvisioningFailed"

// volumeDriverError returns the latest error of the volume of a claim, by the events of the
// claim: external-provisioner reports it nowhere else.
func volumeDriverError(claim types.UID, events []corev1.Event) driverError {
	var all []driverError
	latest := driverError{}
	for i := range events {
		if event := &events[i]; event.Reason == ProvisioningFailedEvent && event.InvolvedObject.UID == claim {
			one := eventError(event)
			all = append(all, one)
			if one.last.After(latest.last) {
				latest = one
			}
		}
	}
	for _, one := range all { // a sidecar that was restarted writes a new event
		if one.message == latest.message && one.first.Before(latest.first) {
			latest.first = one.first
		}
	}
	for _, one := range all { // another error in between: the driver does not repeat one
		if one.message != latest.message && one.last.After(latest.first) {
			latest.first = one.last
		}
	}
	return latest
}

// combinedEvent begins the message of an event in which the recorder of client-go counts
// events with different messages. It has the latest one.
const combinedEvent = "(combined from similar events)"

// eventError returns the error in an event of either API of events.
func eventError(event *corev1.Event) driverError {
	found := driverError{event.Message, event.FirstTimestamp.Time, event.LastTimestamp.Time}
	if found.first.IsZero() {
		found.first = event.EventTime.Time
	}
	if event.Series != nil && event.Series.LastObservedTime.After(found.last) {
		found.last = event.Series.LastObservedTime.Time
	}
	if found.last.IsZero() {
		found.last = found.first
	}
	if strings.HasPrefix(found.message, combinedEvent) {
		found.first = found.last
	}
	return found
}

// repeats reports whether the driver has reported the error for so long that waiting does
// not help.
func (e driverError) repeats(now time.Time) bool {
	return e.message != "" && !e.first.IsZero() && !isTransient.MatchString(e.message) &&
		!now.Before(e.first.Add(errorPeriod)) && !e.last.Before(e.first.Add(repeatPeriod))
}

// suffix returns the error as the end of a sentence; empty if there is none.
func (e driverError) suffix() string {
	if e.message == "" {
		return ""
	}
	return ", and the driver says: " + e.message
}

// failure returns the failure of an attempt whose driver repeats an error; nil if it does
// not. call is what the driver was asked to do.
func (e driverError) failure(a Attempt, call string, now time.Time) *Failure {
	if !e.repeats(now) {
		return nil
	}
	return &Failure{
		Key: a.Key, Reason: ReasonDriverFails, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "for " + errorPeriod.String() + " its driver has failed to " + call + ", always with the same error: " + e.message,
	}
}

// snapshotFailure is failure for a snapshot.
func snapshotFailure(a Attempt, snapshot *snapshotv1.VolumeSnapshot, now time.Time) *Failure {
	if snapshot == nil || IsReady(snapshot) {
		return nil
	}
	return snapshotDriverError(snapshot).failure(a, "take its snapshot "+snapshot.Name, now)
}

// WaitsForVolume returns the claim that waits for a volume: that of the trial, or the new
// one. It is nil if neither waits.
func (f Facts) WaitsForVolume() *corev1.PersistentVolumeClaim {
	for _, claim := range []*corev1.PersistentVolumeClaim{f.TrialClaim, f.Claim} {
		if claim != nil && claim.DeletionTimestamp == nil && claim.Status.Phase != corev1.ClaimBound {
			return claim
		}
	}
	return nil
}

// newVolumeError returns the error of the volume that a claim waits for.
func (f Facts) newVolumeError() driverError {
	claim := f.WaitsForVolume()
	if claim == nil {
		return driverError{}
	}
	return volumeDriverError(claim.UID, f.Events)
}

// whyNoVolume returns that error as the end of a sentence.
func (f Facts) whyNoVolume() string {
	if suffix := f.newVolumeError().suffix(); suffix != "" {
		return suffix
	}
	return "; its events say why"
}
