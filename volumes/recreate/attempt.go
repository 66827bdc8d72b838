// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// attempt returns the next step of a claim that is to be recreated and still exists.
// Whatever was done so far can be taken back, and is, when it is not wanted any more.
func (f Facts) attempt(a Attempt, now time.Time) Step {
	if a.Abandoned != "" {
		return f.unwind()
	}
	if why := f.unwanted(a); why != "" {
		return f.giveUp(nil, why)
	}
	if runsItsPod(a) {
		return f.try(a, now)
	}
	if f.Pod != nil {
		return wait(ReasonClaimRecreating, "its pod is being stopped for it to be recreated")
	}
	if late := f.overdue(a, now); late != nil {
		return f.giveUp(late, late.Message)
	}
	if step := f.stop(a, now); step != nil {
		return *step
	}
	if !f.holdsFor(a) {
		return f.hold(a)
	}
	if step := f.save(a, now); step != nil {
		return *step
	}
	if step := f.dropTrial(f.Claim.UID); step != nil {
		return *step
	}
	if f.isBeingSaved() {
		return wait(ReasonSnapshotNotReady, "it is recreated when no other snapshot of it is being taken").until(a.StoppedTimestamp.Add(f.timeout()))
	}
	switch j := f.Judgement; {
	case j != nil && j.Refused != nil:
		return f.giveUp(nil, j.Refused.Message)
	case j != nil && j.Source != a.Source:
		return f.giveUp(nil, "it can be recreated from another source than was meant when its pod was stopped")
	}
	step := act(DeleteClaim, ReasonClaimRecreating, "it is deleted to be recreated from %s; its volume %s is held", from(a), f.Volume.Name)
	if a.Source == appsv1beta1.VolumeRecreateSource {
		step.Message = fmt.Sprintf("it is deleted to have volume %s back; what was written since%s is in volume %s only, which is held", a.Volume, f.since(a.Volume), f.Volume.Name)
	}
	step.Claim = f.Claim
	return step
}

// runsItsPod reports whether the pod of an attempt has not been stopped for it yet. An
// attempt that gives an earlier volume back to a claim whose pod is kept away has no pod.
func runsItsPod(a Attempt) bool {
	return a.Pod == "" && a.Source == appsv1beta1.SnapshotRecreateSource
}

// since says since when a claim has run without a volume.
func (f Facts) since(volume string) string {
	for _, held := range f.record().HeldVolumes {
		if held.Name == volume && held.SinceTimestamp != nil {
			return " " + held.SinceTimestamp.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// unwanted says why a claim is not to be recreated any more; empty if it is.
func (f Facts) unwanted(a Attempt) string {
	switch {
	case f.Volume == nil:
		return "it has no volume"
	case f.Volume.DeletionTimestamp != nil:
		return "its volume " + f.Volume.Name + " is being deleted"
	case f.Failed != "" && runsItsPod(a):
		return "that failed for claim " + f.Failed
	case runsItsPod(a) && a.Key != KeyOf(f.Template, f.Strategy):
		return "what is wanted of it has changed, and is tried again"
	case f.Foreign:
		return "it belongs to another controller now"
	case f.Pod != nil && !runsItsPod(a) && f.Pod.UID != a.Pod:
		return "there is another pod meanwhile"
	case a.Source == appsv1beta1.VolumeRecreateSource:
		wanted := undoOf(f.Claim)
		if byOperator := wanted == "" && isRewritten(f.record()); wanted != a.Volume && !byOperator {
			return "its annotation " + appsv1beta1.UndoRecreateAnnotation + " asks no more for volume " + a.Volume
		}
		return ""
	case !f.Strategy.Recreates():
		return "volumeClaimUpdateStrategy is " + string(f.Strategy.GetType())
	case !volumes.NeedsRecreate(f.Claim, f.Template):
		return "it is what its template says"
	case undoOf(f.Claim) != "":
		return "its annotation " + appsv1beta1.UndoRecreateAnnotation + " asks for an earlier volume"
	default:
		return ""
	}
}

// overdue returns the failure of an attempt that has taken too long before the claim
// was deleted, or whose driver keeps failing; nil if neither is so.
func (f Facts) overdue(a Attempt, now time.Time) *Failure {
	if a.StoppedTimestamp == nil && (len(f.Users) > 0 || len(f.Nodes) == 0) {
		return nil // the pod is on its way out, or it is not noted yet that it is gone
	}
	if isOwnSnapshot(f.Snapshot, f.Claim.UID) {
		if failure := snapshotFailure(a, f.Snapshot, now); failure != nil {
			return failure
		}
	}
	what, since, limit := f.slowest(a)
	if now.Before(since.Add(limit)) {
		return nil
	}
	message := what + " within " + limit.String()
	if said := snapshotError(f.Snapshot); said != "" {
		message += ": " + said
	}
	return &Failure{Key: a.Key, Reason: ReasonRecreateTimedOut, Message: message, Timestamp: metav1.NewTime(now).Rfc3339Copy()}
}

// slowest says what an attempt waits for, since when, and how long that may take. What
// does not depend on a driver alone has twice the time.
func (f Facts) slowest(a Attempt) (what string, since time.Time, limit time.Duration) {
	isSaved := a.Source != appsv1beta1.SnapshotRecreateSource || IsReady(f.Snapshot)
	switch {
	case a.StoppedTimestamp == nil:
		return "its volume was not detached", f.goneBy(a), f.timeout()
	case isSaved && f.isBeingSaved():
		return "other snapshots of it were being taken, and it could not be deleted", a.StoppedTimestamp.Time, f.timeout()
	case isSaved:
		return "its volume could not be held, or it be deleted,", a.StoppedTimestamp.Time, 2 * f.timeout()
	case f.Snapshot == nil:
		return "its snapshot " + a.Snapshot + " was not taken", a.StoppedTimestamp.Time, 2 * f.timeout()
	default:
		return "its snapshot " + a.Snapshot + " was not ready", f.Snapshot.CreationTimestamp.Time, f.timeout()
	}
}

// goneBy returns when the pod of an attempt should have been gone.
func (f Facts) goneBy(a Attempt) time.Time {
	return a.StartTimestamp.Add(time.Duration(a.GraceSeconds) * time.Second)
}

// podName is the name of the pod that the claim was made for.
func (f Facts) podName() string { return f.Workload + "-" + strconv.Itoa(f.Ordinal) }

// stop returns the step that makes sure that nothing writes to the volume any more;
// nil if that is so.
func (f Facts) stop(a Attempt, now time.Time) *Step {
	step := Step{}
	switch {
	case len(f.Users) > 0 && f.Users[0] != f.podName():
		step = f.giveUp(nil, "pod "+f.Users[0]+" uses it as well")
	case len(f.Users) > 0 && a.StoppedTimestamp == nil:
		step = wait(ReasonClaimInUse, "it is recreated when pod %s is gone, which uses it", f.Users[0])
	case len(f.Users) > 0:
		step = f.giveUp(nil, "pod "+f.Users[0]+" uses it")
	case a.StoppedTimestamp != nil:
		return f.watch(a, now)
	case len(f.Nodes) > 0:
		step = wait(ReasonVolumeAttached, "it is recreated when its volume is detached from node %s", f.Nodes[0]).
			until(f.goneBy(a).Add(f.timeout()))
	default:
		record := f.record()
		record.Recreate.StoppedTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
		step = f.note(record, "nothing uses its volume any more")
	}
	return &step
}

// How often it is noted that the volume of an attempt is looked at, and how long a time
// without a look is taken to have seen no pod come and go.
const (
	watchPeriod = time.Minute
	blindPeriod = 3 * time.Minute
)

// watch returns the step that keeps an attempt under observation; nil if it is. A
// snapshot is no longer all there is when something may have written meanwhile: while the
// manager was down, or the pod was not wanted.
func (f Facts) watch(a Attempt, now time.Time) *Step {
	last := a.StoppedTimestamp.Time
	if a.WatchedTimestamp != nil {
		last = a.WatchedTimestamp.Time
	}
	switch {
	case !now.Before(last.Add(blindPeriod)):
		step := f.giveUp(nil, "it is not known what has used its volume since "+last.UTC().Format(time.RFC3339))
		return &step
	case now.Before(last.Add(watchPeriod)):
		return nil
	}
	record := f.record()
	record.Recreate.WatchedTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
	step := f.note(record, "nothing has used its volume since its pod was stopped")
	return &step
}

// save returns the step towards a snapshot that is ready to use; nil if there is one,
// or none is needed.
func (f Facts) save(a Attempt, now time.Time) *Step {
	if a.Source != appsv1beta1.SnapshotRecreateSource || IsReady(f.Snapshot) && isOwnSnapshot(f.Snapshot, f.Claim.UID) {
		return nil
	}
	step := Step{}
	unstaged, deadline := a.StoppedTimestamp.Add(unstagePeriod), a.StoppedTimestamp.Add(f.timeout())
	switch {
	case f.Snapshot == nil && !f.Attaches && now.Before(unstaged):
		step = wait(ReasonVolumeAttached, "its snapshot is taken when its node has unmounted its volume").until(unstaged)
	case f.Snapshot == nil:
		step = act(CreateSnapshot, ReasonSnapshotNotReady, "snapshot %s of it is taken", a.Snapshot)
		step.Snapshot = f.newSnapshot(a.Snapshot, a.SnapshotClass)
	case !isOwnSnapshot(f.Snapshot, f.Claim.UID):
		step = f.giveUp(&Failure{Key: a.Key, Reason: ReasonSnapshotTaken, Timestamp: metav1.NewTime(now).Rfc3339Copy()},
			"the name "+a.Snapshot+" belongs to a snapshot of another client")
	default:
		step = wait(ReasonSnapshotNotReady, "its snapshot %s is being taken%s", a.Snapshot, snapshotDriverError(f.Snapshot).suffix()).until(deadline)
	}
	return &step
}

// isBeingSaved reports whether a snapshot of the claim is being taken. If it were
// deleted, it would be neither there nor gone until that is done, and it could not be
// taken back.
//
// Source: the finalizer of the snapshot controller, external-snapshotter v8.
func (f Facts) isBeingSaved() bool {
	return slices.Contains(f.Claim.Finalizers, beingSavedFinalizer)
}

const beingSavedFinalizer = "snapshot.storage.kubernetes.io/pvc-as-source-protection"

// giveUp returns the step that decides for the claim as it is. It is a write to the
// claim, before all others: a deletion of the claim that is still on its way, from a
// manager that is no more, is refused from then on.
func (f Facts) giveUp(failure *Failure, why string) Step {
	record := f.record()
	record.Recreate.Abandoned = why
	if failure != nil {
		record.RecreateFailure = failure
	}
	step := f.note(record, "it is not recreated, and its pod keeps the volume that it has: %s", why)
	if failure != nil {
		failure.Message = why
		step.Reason, step.Failed = failure.Reason, true
	}
	return step
}

// unwind returns the next step on the way back to the claim as it was.
func (f Facts) unwind() Step {
	switch {
	case f.Volume != nil && f.Volume.State != nil:
		step := act(ReleaseVolume, ReasonClaimRecreating, "its volume %s is not held any more", f.Volume.Name)
		step.Volume, step.State = f.Volume.PersistentVolume, f.Volume.State
		return step
	case f.Volume != nil && isOwnSnapshot(f.Snapshot, f.Claim.UID) && f.Snapshot.DeletionTimestamp == nil:
		step := act(DeleteSnapshot, ReasonClaimRecreating, "its snapshot %s is deleted", f.Snapshot.Name)
		step.Snapshot = f.Snapshot
		return step
	default:
		if step := f.dropTrial(f.Claim.UID); step != nil {
			return *step
		}
		record := f.record()
		record.Recreate = nil
		return f.note(record, "nothing is left of what was done to recreate it")
	}
}

// holdsFor reports whether the volume is held for an attempt.
func (f Facts) holdsFor(a Attempt) bool {
	state := f.Volume.State
	return state != nil && state.ClaimUID == f.Claim.UID && state.Recreate.Number == a.Number &&
		state.Recreate.Source == a.Source && state.Recreate.Snapshot == a.Snapshot && state.Recreate.Volume == a.Volume &&
		f.Volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// hold returns the step that holds the volume of the claim.
func (f Facts) hold(a Attempt) Step {
	step := act(HoldVolume, ReasonClaimRecreating, "its volume %s is held", f.Volume.Name)
	step.Volume, step.State = f.Volume.PersistentVolume, newHeldState(f.Claim, f.Volume, f.Owner, a)
	return step
}

// note returns the step that writes a record to the claim.
func (f Facts) note(record volumes.Record, format string, args ...any) Step {
	step := act(Note, ReasonClaimRecreating, format, args...)
	step.Claim, step.Record = f.Claim, record
	return step
}

// from says what a claim is recreated from.
func from(a Attempt) string {
	switch a.Source {
	case appsv1beta1.SnapshotRecreateSource:
		return "snapshot " + a.Snapshot
	case appsv1beta1.VolumeRecreateSource:
		return "volume " + a.Volume
	case appsv1beta1.EmptyRecreateSource:
		return "nothing, as withoutSnapshot says"
	default:
		return string(a.Source)
	}
}
