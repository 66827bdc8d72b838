// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// patient lets snapshots take an hour.
func patient(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.TimeoutSeconds = ptr.To[int32](3600) }

// pass lets time go by, and everybody look at each second of it.
func (l *life) pass(d time.Duration) {
	for until := l.now.Add(d); l.now.Before(until); {
		before := l.now
		l.round()
		if !l.now.After(before) {
			l.now = l.now.Add(time.Second)
		}
	}
}

// driverErrors are errors of drivers, and whether they end an attempt before its time.
var driverErrors = map[string]struct {
	words string
	ends  bool
}{
	"an error that stays":              {"rpc error: code = InvalidArgument desc = no volumes like this", true},
	"an error of a call that is under": {"rpc error: code = Aborted desc = an operation is under way", false},
	"a driver that cannot be reached":  {"rpc error: code = Unavailable desc = connection refused", false},
}

// TestDriverThatKeepsFailing: a pod is not kept away for an hour for a driver that says the
// same again and again, and not stopped for it if that is known before.
func TestDriverThatKeepsFailing(t *testing.T) {
	for moment, test := range map[string]struct {
		until string
		fail  func(*life, bool)
	}{
		"the first snapshot": {"Note begin", func(l *life, is bool) { l.failing = is }},
		"the trial":          {"TryRestore", func(l *life, is bool) { l.stuckOnTrial = is }},
		"the snapshot":       {"HoldVolume", func(l *life, is bool) { l.failing = is }},
		"the new volume":     {"CreateClaim from", func(l *life, is bool) { l.stuck = is }},
	} {
		for name, driver := range driverErrors {
			t.Run(moment+", "+name, func(t *testing.T) {
				g := NewWithT(t)
				l := newLife(t, patient)
				l.wants("fast")
				l.until(test.until)
				l.words = driver.words
				test.fail(l, true)
				l.pass(4 * time.Minute)
				g.Expect(l.failure()).To(BeEmpty(), "it may pass")
				g.Expect(l.step.Message).To(ContainSubstring(driver.words))
				l.pass(2 * time.Minute)
				test.fail(l, false)
				l.settle()
				if !driver.ends {
					l.expectOn("pv-2", "fast")
					return
				}
				l.expectOnOld(ReasonDriverFails)
				g.Expect(volumes.RecordOf(l.claim).RecreateFailure.Message).To(ContainSubstring(driver.words))
				g.Expect(HasFailed(l.claim, l.template, l.strategy)).To(BeTrue(), "it is not tried with the next claim")
			})
		}
	}
}

// TestDriverThatFailsInOtherWords: a driver whose errors change gets on.
func TestDriverThatFailsInOtherWords(t *testing.T) {
	for moment, test := range map[string]struct {
		until string
		fail  func(*life, bool)
	}{
		"a snapshot": {"Note begin", func(l *life, is bool) { l.failing = is }},
		"a volume":   {"CreateClaim from", func(l *life, is bool) { l.stuck = is }},
	} {
		t.Run(moment, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, patient)
			l.wants("fast")
			l.until(test.until)
			l.words = "code = Internal desc = no room on node-1"
			test.fail(l, true)
			l.pass(4 * time.Minute)
			l.words = "code = Internal desc = no room on node-2"
			l.pass(4 * time.Minute)
			g.Expect(l.failure()).To(BeEmpty())
			test.fail(l, false)
			l.settle()
			l.expectOn("pv-2", "fast")
		})
	}
}

// TestErrorsOfVolumes: of the events of a claim, the latest error counts, since it was
// reported first, and not those of another claim.
func TestErrorsOfVolumes(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(minute) * time.Minute)) }
	event := func(claim, words string, first, last int) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{UID: types.UID(claim)}, Reason: ProvisioningFailedEvent, Message: words,
			FirstTimestamp: at(first), LastTimestamp: at(last),
		}
	}
	for name, test := range map[string]struct {
		events []corev1.Event
		words  string
		lasts  bool
	}{
		"none":                      {nil, "", false},
		"for ten minutes":           {[]corev1.Event{event("claim", "no room", 0, 9)}, "no room", true},
		"once, ten minutes ago":     {[]corev1.Event{event("claim", "no room", 0, 0)}, "no room", false},
		"since four minutes":        {[]corev1.Event{event("claim", "no room", 6, 9)}, "no room", false},
		"of another claim":          {[]corev1.Event{event("other", "no room", 0, 9)}, "", false},
		"another one since":         {[]corev1.Event{event("claim", "no room", 0, 7), event("claim", "no such pool", 8, 9)}, "no such pool", false},
		"another one before":        {[]corev1.Event{event("claim", "no such pool", 0, 1), event("claim", "no room", 2, 9)}, "no room", true},
		"the sidecar was restarted": {[]corev1.Event{event("claim", "no room", 8, 9), event("claim", "no room", 0, 5)}, "no room", true},
		"other words each time, of which the recorder keeps the latest": {
			[]corev1.Event{event("claim", "(combined from similar events): no room on node-7", 0, 9)}, "(combined from similar events): no room on node-7", false,
		},
		"two errors in turn": {[]corev1.Event{event("claim", "no room", 0, 9), event("claim", "code = Aborted", 1, 8)}, "no room", false},
		"of the API events.k8s.io": {[]corev1.Event{{
			InvolvedObject: corev1.ObjectReference{UID: "claim"}, Reason: ProvisioningFailedEvent, Message: "no room", EventTime: metav1.NewMicroTime(at(0).Time),
			Series: &corev1.EventSeries{Count: 9, LastObservedTime: metav1.NewMicroTime(at(9).Time)},
		}}, "no room", true},
		"something else of that claim": {[]corev1.Event{{InvolvedObject: corev1.ObjectReference{UID: "claim"}, Reason: "Provisioning", Message: "begun", LastTimestamp: at(9)}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := volumeDriverError("claim", test.events)
			g.Expect(found.message).To(Equal(test.words))
			g.Expect(found.repeats(at(10).Time)).To(Equal(test.lasts))
		})
	}
}

// TestErrorBeforeASlowSnapshot: external-snapshotter leaves the error of an earlier call in the
// status until the snapshot is ready. A driver that failed once and is uploading now does not
// fail, and a conflict of the sidecar's own writes is no error of the driver.
//
// Source: updateSnapshotContentStatus of external-snapshotter v8.
func TestErrorBeforeASlowSnapshot(t *testing.T) {
	for moment, write := range map[string]string{"the first snapshot": "CreateTrial", "the snapshot": "CreateSnapshot"} {
		for words, isCut := range map[string]bool{
			"failed to take snapshot of the volume vol-1: rpc error: code = Internal desc = RequestLimitExceeded":        true,
			"failed to add VolumeSnapshotBeingCreated annotation on the content content-1: the object has been modified": false,
		} {
			t.Run(moment+", "+words, func(t *testing.T) {
				l := newLife(t, patient)
				l.wants("fast")
				if write == "CreateSnapshot" {
					l.until("HoldVolume")
				}
				l.stalled = true // it is being uploaded
				l.until(write)
				for began := l.now; l.now.Before(began.Add(10 * time.Minute)); l.round() {
					for _, snapshot := range l.snapshots {
						if snapshot.Status == nil || IsReady(snapshot.VolumeSnapshot) {
							continue
						}
						snapshot.Status.Error = &snapshotv1.VolumeSnapshotError{Message: &words, Time: ptr.To(metav1.NewTime(began.Add(time.Second)))}
						if isCut {
							snapshot.Status.CreationTime = ptr.To(metav1.NewTime(began.Add(3 * time.Second)))
						}
					}
				}
				NewWithT(t).Expect(l.failure()).To(BeEmpty())
			})
		}
	}
}

// TestTrialThatIsToBeScheduledAgain: the provisioner takes the node off the claim of a trial,
// for which it has no room there. No scheduler will choose another one for that claim.
func TestTrialThatIsToBeScheduledAgain(t *testing.T) {
	l := newLife(t, patient)
	l.lazy, l.stuckOnTrial = true, true
	l.words = "code = ResourceExhausted desc = no room"
	l.wants("fast")
	l.until("TryRestore")
	l.turn()
	delete(l.trial.Annotations, volumehelpers.AnnSelectedNode)
	l.rounds(5)
	l.expectOnOld(ReasonDriverFails)
	NewWithT(t).Expect(volumes.RecordOf(l.claim).RecreateFailure.Message).To(And(ContainSubstring("on node node-1"), ContainSubstring(l.words)))
}
