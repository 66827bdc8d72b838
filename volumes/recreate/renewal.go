// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// renew returns the next step of a claim that does not exist: to make it again, if
// a held volume says so.
func (f Facts) renew(now time.Time) Step {
	held := InFlight(f.Held)
	if held == nil {
		return f.restore()
	}
	if !held.isOf(f.Owner) {
		return f.ask(held)
	}
	a := held.State.Recreate
	if why := f.barrier(held); why != nil {
		return f.takeBack(held, why)
	}
	if a.Source == appsv1beta1.VolumeRecreateSource {
		return f.rebind(held, now)
	}
	if a.Source == appsv1beta1.SnapshotRecreateSource && !IsReady(f.Snapshot) {
		return f.awaitSnapshot(held, now)
	}
	if step := f.lock(); step != nil {
		return *step
	}
	return f.create(held, f.newClaim(held), now)
}

// awaitSnapshot returns the step of a claim that another client has deleted before its
// snapshot was ready.
func (f Facts) awaitSnapshot(held *Volume, now time.Time) Step {
	a := held.State.Recreate
	if f.Snapshot == nil {
		return wait(ReasonSnapshotLost, "its snapshot %s is gone, and its volume %s is being deleted: no other object leads to its data", a.Snapshot, held.Name)
	}
	if isBegun := f.Snapshot.Status != nil && f.Snapshot.Status.BoundVolumeSnapshotContentName != nil; !isBegun && held.DeletionTimestamp == nil {
		return f.takeBack(held, &Failure{Message: "it was deleted before its snapshot " + a.Snapshot + " was taken, which now cannot be"})
	}
	if failure := snapshotFailure(a, f.Snapshot, now); failure != nil && held.DeletionTimestamp == nil {
		return f.takeBack(held, failure)
	}
	deadline := held.State.Recreate.StartTimestamp.Add(f.timeout())
	if a.StoppedTimestamp != nil {
		deadline = a.StoppedTimestamp.Add(f.timeout())
	}
	if now.Before(deadline) || held.DeletionTimestamp != nil {
		return wait(ReasonSnapshotNotReady, "it is recreated when its snapshot %s is ready to use", a.Snapshot).until(deadline)
	}
	return f.takeBack(held, &Failure{
		Key: a.Key, Reason: ReasonRecreateTimedOut, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "its snapshot " + a.Snapshot + " was not ready within " + f.timeout().String(),
	})
}

// lock returns the step that keeps a held volume from the next claim of the name; nil if
// none needs it. Kubernetes would bind it to any, whatever that is to be made from.
func (f Facts) lock() *Step {
	for _, held := range f.Held {
		if owner := held.Spec.ClaimRef; owner != nil && owner.UID == "" {
			step := act(LockVolume, ReasonClaimRecreating, "volume %s is kept from other claims", held.Name)
			step.Volume, step.State = held.PersistentVolume, held.State
			return &step
		}
	}
	return nil
}

func (f Facts) create(held *Volume, claim *corev1.PersistentVolumeClaim, now time.Time) Step {
	if f.Refused != "" {
		return f.refused(held, now)
	}
	step := act(CreateClaim, ReasonClaimRecreating, "it is recreated from %s", from(held.State.Recreate))
	step.Claim = claim
	return step
}

// refusedPeriod is for how long the API server may refuse a new claim before the claim gets
// its old volume back. The pod is away meanwhile.
const refusedPeriod = 2 * time.Minute

// refused returns the next step of a claim that the API server refuses. A claim that is to
// have its old volume back has no other way.
func (f Facts) refused(held *Volume, now time.Time) Step {
	state := held.State
	since := state.RefusedTimestamp
	step := wait(volumes.ReasonClaimRefused, "the API server refuses to create it, and is asked again: %s", f.Refused)
	isBack := state.Recreate.Source == appsv1beta1.VolumeRecreateSource && state.Recreate.Volume == held.Name
	if isBack || held.DeletionTimestamp != nil {
		return step // there is no other way
	}
	if since == nil {
		noted := state.DeepCopy()
		noted.RefusedTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
		step = act(HoldVolume, volumes.ReasonClaimRefused, "the API server refuses to create it: %s", f.Refused)
		step.Volume, step.State = held.PersistentVolume, noted
		return step
	}
	if end := since.Add(refusedPeriod); now.Before(end) {
		return step.until(end)
	}
	return f.takeBack(held, &Failure{
		Key: KeyOf(f.Template, f.Strategy), Reason: volumes.ReasonClaimRefused, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "the API server refused to create it for " + refusedPeriod.String() + ": " + f.Refused,
	})
}

// barrier says why a claim cannot be made from what it was to be made from, or need
// not be; nil if it can. No pod has had the new volume yet, so nothing is lost with
// the old one.
func (f Facts) barrier(held *Volume) *Failure {
	a := held.State.Recreate
	switch {
	case a.Source == appsv1beta1.VolumeRecreateSource && a.Volume == held.Name:
		return nil // it is on its way back
	case a.Source == appsv1beta1.VolumeRecreateSource && !f.mayHaveTarget():
		return &Failure{Key: a.Key, Reason: ReasonVolumeLost, Message: "volume " + a.Volume + ", which it was to have back, is not there or belongs to another claim"}
	case a.Source == appsv1beta1.VolumeRecreateSource, held.DeletionTimestamp != nil:
		return nil
	case f.fits(held):
		return &Failure{Message: "its template is what its old volume is"}
	case a.Source == appsv1beta1.SnapshotRecreateSource && (!isOwnSnapshot(f.Snapshot, held.State.ClaimUID) || f.Snapshot.DeletionTimestamp != nil):
		return &Failure{Key: a.Key, Reason: ReasonSnapshotLost, Message: "its snapshot " + a.Snapshot + " is gone"}
	default:
		return nil
	}
}

// fits reports whether a held volume is what the template asks for.
func (f Facts) fits(held *Volume) bool {
	return !volumes.NeedsRecreate(claimOf(held, f.Template), f.Template)
}

// takeBack returns the step that decides for the old volume. A failure without a
// reason is none.
func (f Facts) takeBack(held *Volume, why *Failure) Step {
	state := held.State.DeepCopy()
	state.Recreate.Source, state.Recreate.Volume = appsv1beta1.VolumeRecreateSource, held.Name
	if why.Reason != "" {
		state.Failure = why
	}
	step := act(HoldVolume, ReasonClaimRecreating, "it gets its volume %s back: %s", held.Name, why.Message)
	if why.Reason != "" {
		step.Reason, step.Failed = why.Reason, true
	}
	step.Volume, step.State = held.PersistentVolume, state
	return step
}

// mayHaveTarget reports whether the volume that the claim is to have back is there
// for it.
func (f Facts) mayHaveTarget() bool {
	return f.Target != nil && f.Target.DeletionTimestamp == nil && f.Target.IsHeldFor(f.Template.Namespace, f.Template.Name)
}

// volumeInUse says why a volume cannot be given back yet.
const volumeInUse = "it is to have volume %s back, which is %s and not to be had: it must be Released or Available, with reclaim policy Retain, and its claimRef name this claim"

// rebind returns the next step towards a claim that has a volume back.
func (f Facts) rebind(held *Volume, now time.Time) Step {
	target := f.Target
	if target == nil {
		return wait(ReasonVolumeLost, "it is to have volume %s back, which is not there", held.State.Recreate.Volume)
	}
	if !target.isFree() {
		return wait(ReasonVolumeLost, volumeInUse, target.Name, target.Status.Phase)
	}
	if target.Spec.ClaimRef.UID != "" {
		step := act(FreeVolume, ReasonClaimRecreating, "volume %s is free for it", target.Name)
		step.Volume = target.PersistentVolume
		return step
	}
	return f.create(held, f.claimOn(held, target), now)
}

// awaitVolume returns the next step of a claim that is there and has never been bound:
// nothing was written to it.
func (f Facts) awaitVolume(now time.Time) Step {
	held := f.renewing()
	if held == nil {
		return f.awaitRestore()
	}
	if beginsEmpty(f.Claim) || !held.isOf(f.Owner) {
		return f.leave(held)
	}
	a := held.State.Recreate
	if a.Source == appsv1beta1.VolumeRecreateSource {
		return f.awaitVolumeBack(held, now)
	}
	if held.State.RefusedTimestamp != nil { // it was accepted: the next refusal is another one
		step := act(HoldVolume, ReasonClaimRecreating, "the API server has accepted it")
		step.Volume, step.State = held.PersistentVolume, held.State.DeepCopy()
		step.State.RefusedTimestamp = nil
		return step
	}
	deadline := f.Claim.CreationTimestamp.Add(f.timeout())
	isDeleted := held.DeletionTimestamp != nil // it is never bound again: the snapshot is all there is
	switch why := f.barrier(held); {
	case f.Claim.Spec.VolumeName != "":
		return pending(wait(ReasonVolumeNotReady, "it is being bound to its volume %s", f.Claim.Spec.VolumeName))
	case why != nil:
		return f.takeBack(held, why)
	case !isDeleted && f.rewritten(held, now) != nil:
		return f.takeBack(held, f.rewritten(held, now))
	case !isDeleted && undoOf(f.Claim) == held.Name:
		return f.takeBack(held, f.undone(a, now))
	case !isDeleted && f.newVolumeError().repeats(now):
		return f.takeBack(held, f.newVolumeError().failure(a, "make its volume from "+from(a), now))
	case !isDeleted && !now.Before(deadline):
		message := fmt.Sprintf("it had no volume from %s within %s%s", from(a), f.timeout(), f.whyNoVolume())
		return f.takeBack(held, &Failure{Key: a.Key, Reason: ReasonRecreateTimedOut, Message: message, Timestamp: metav1.NewTime(now).Rfc3339Copy()})
	case a.Source == appsv1beta1.SnapshotRecreateSource && !f.asksFor(a.Snapshot):
		return f.startAgain(held, "it does not ask for snapshot "+a.Snapshot, now)
	case volumes.NeedsRecreate(f.Claim, f.Template):
		return f.startAgain(held, "it is not what its template says", now)
	default:
		return pending(wait(ReasonVolumeNotReady, "its new volume is being made from %s%s", from(a), f.newVolumeError().suffix()).until(deadline))
	}
}

// awaitVolumeBack returns the next step of a claim that is to be bound to a volume that it
// has had before.
func (f Facts) awaitVolumeBack(held *Volume, now time.Time) Step {
	name, retried := held.State.Recreate.Volume, f.Claim.CreationTimestamp.Add(min(unfitPeriod<<held.State.Restarts, maxUnfitPeriod))
	switch {
	case f.barrier(held) != nil, f.Claim.Spec.VolumeName != name:
		return f.deleteUnbound("it is not bound to volume " + name)
	case !f.isUnfit():
		step := wait(ReasonVolumeNotReady, "it is being bound to its volume %s", name)
		step.PodMayRun = unrestored(f.record()) == nil // a user has to say first what it is to have
		return step
	case now.Before(retried):
		return wait(ReasonClaimRewritten, "admission changed the claim when it was created, and it cannot have volume %s: its storage class is %q, the volume is of class %q",
			name, volumehelpers.GetPersistentVolumeClaimClass(f.Claim), volumehelpers.GetPersistentVolumeClass(f.Target.PersistentVolume)).until(retried)
	case held.State.RestartedClaim != f.Claim.UID:
		return f.countRestart(held)
	default:
		return f.deleteUnbound("admission changed it")
	}
}

// unfitPeriod is after how long a claim is created again that admission has changed so
// that it cannot have its volume back: each time after twice as long, up to maxUnfitPeriod.
const (
	unfitPeriod    = time.Minute
	maxUnfitPeriod = 5 * time.Minute
)

// isUnfit reports whether the claim asks for its volume, and Kubernetes does not bind that
// to it.
func (f Facts) isUnfit() bool {
	return f.Target != nil && volumehelpers.GetPersistentVolumeClaimClass(f.Claim) != volumehelpers.GetPersistentVolumeClass(f.Target.PersistentVolume)
}

// pending returns a step beside which the pod can be made: some volumes wait for it.
func pending(step Step) Step {
	step.PodMayRun = true
	return step
}

// maxRestarts is how often a claim is created again that is not what was asked for.
const maxRestarts = 5

// startAgain returns the next step of a claim without a volume that is not what was asked
// for: it is created again. If that does not help, the claim gets its old volume back.
func (f Facts) startAgain(held *Volume, why string, now time.Time) Step {
	switch {
	case held.State.RestartedClaim == f.Claim.UID:
		return f.deleteUnbound(why)
	case held.State.Restarts < maxRestarts || held.DeletionTimestamp != nil:
		return f.countRestart(held)
	default:
		return f.takeBack(held, &Failure{
			Key: KeyOf(f.Template, f.Strategy), Reason: ReasonClaimRewritten, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
			Message: fmt.Sprintf("it was created %d times, and each time something changed it: %s", maxRestarts+1, why),
		})
	}
}

// countRestart returns the step that notes that a claim without a volume is deleted, to be
// created again.
func (f Facts) countRestart(held *Volume) Step {
	step := act(HoldVolume, ReasonClaimRecreating, "it is created again")
	step.Volume, step.State = held.PersistentVolume, held.State.DeepCopy()
	step.State.Restarts, step.State.RestartedClaim = min(held.State.Restarts+1, maxRestarts), f.Claim.UID
	return step
}

// deleteUnbound returns the step that deletes a claim to which nothing was written.
func (f Facts) deleteUnbound(why string) Step {
	step := act(DeleteClaim, ReasonClaimRecreating, "it is deleted before it has a volume, and made again: %s", why)
	step.Claim = f.Claim
	return step
}

// renewing returns the held volume that the claim has taken the place of; nil if its
// pod has been ready since, or there is none.
func (f Facts) renewing() *Volume {
	held := InFlight(f.Held)
	if held == nil || held.State.ClaimUID == f.Claim.UID {
		return nil
	}
	return held
}

// undone is the failure that keeps a claim from being recreated again after its
// volume was given back.
func (f Facts) undone(a Attempt, now time.Time) *Failure {
	return &Failure{
		Key: a.Key, Reason: ReasonRecreateUndone, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "its volume was given back, as annotation " + appsv1beta1.UndoRecreateAnnotation + " asked",
	}
}
