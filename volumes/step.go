// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Facts is what is known of one claim.
type Facts struct {
	// Claim is nil while it does not exist.
	Claim *corev1.PersistentVolumeClaim
	// Controller names the controller of the claim if that is neither the workload nor a
	// pod: such a claim is left alone. It is empty for all others.
	Controller string
	// Template is the claim template that the claim is to follow.
	Template *corev1.PersistentVolumeClaim
	// StorageClass is that of the claim; nil if there is none of its name.
	StorageClass *storagev1.StorageClass
	// ClassesUnknown is true when classes may not be read. The API server judges what is
	// asked for.
	ClassesUnknown bool
	// LacksAttributesClass is true when there is no VolumeAttributesClass of the
	// name that the template says.
	LacksAttributesClass bool
	// Pod is the pod that uses the claim; nil while there is none.
	Pod *Pod
	// WhyNotDetached says why the pod is not to be deleted for its claim; empty if it
	// may be.
	WhyNotDetached string
	// InUseSince is when another claim of the same template was found to grow only
	// with its pod gone, see [GrewDetached]; zero if none was.
	InUseSince time.Time
	// Refused is what the API server said to patches of the claim that it refused.
	Refused []Refusal
	// Recreation is set for a claim that is, or is to be, recreated.
	Recreation *Recreation
}

// Pod is what a claim has to know of the pod that uses it.
type Pod struct {
	UID types.UID
	// Since is when it was created.
	Since time.Time
	// Ready: its Ready condition is True.
	Ready bool
	// Leaving: it is being deleted.
	Leaving bool
}

// Refusal is what the API server said to a patch.
type Refusal struct {
	// Key is that of the patch, see [Patch.Key].
	Key string
	// Message is in the words of the server.
	Message string
	// Until is when to try again.
	Until time.Time
}

// State is where a claim is on its way to its template.
type State string

// The states of a claim.
const (
	// Settled: the claim is what its template says, or larger.
	Settled State = "Settled"
	// Waiting: the claim cannot be changed now, and waits for others than us.
	Waiting State = "Waiting"
	// Changing: Step.Patch is to be written.
	Changing State = "Changing"
	// UnderWay: it was written, the driver is at work.
	UnderWay State = "UnderWay"
	// Detaching: the claim cannot go on before its pod is gone.
	Detaching State = "Detaching"
	// Blocked: the claim cannot follow its template, or the driver fails.
	Blocked State = "Blocked"
)

// Reasons of steps.
const (
	// ReasonClaimMissing: there is no claim.
	ReasonClaimMissing = "ClaimMissing"
	// ReasonClaimTerminating: the claim is being deleted.
	ReasonClaimTerminating = "ClaimTerminating"
	// ReasonClaimNotBound: the claim has no volume yet.
	ReasonClaimNotBound = "ClaimNotBound"
	// ReasonClaimChanging: the claim is to be changed.
	ReasonClaimChanging = "ClaimChanging"
	// ReasonClaimExpanding: the volume grows.
	ReasonClaimExpanding = "ClaimExpanding"
	// ReasonClaimModifying: the volume gets other attributes.
	ReasonClaimModifying = "ClaimModifying"
	// ReasonVolumeInUse: the volume cannot grow while a pod uses it.
	ReasonVolumeInUse = "VolumeInUse"
	// ReasonVolumeNotRemounted: the volume has grown, the file system on it does not
	// while it is mounted.
	ReasonVolumeNotRemounted = "VolumeNotRemounted"
	// ReasonClaimImmutable: the template says what no claim can become.
	ReasonClaimImmutable = "ClaimImmutable"
	// ReasonClaimControlled: the claim belongs to another controller.
	ReasonClaimControlled = "ClaimControlled"
	// ReasonExpansionNotAllowed: the storage class does not allow expansion.
	ReasonExpansionNotAllowed = "ExpansionNotAllowed"
	// ReasonStorageClassMissing: there is no such storage class.
	ReasonStorageClassMissing = "StorageClassMissing"
	// ReasonAttributesClassMissing: there is no such VolumeAttributesClass.
	ReasonAttributesClassMissing = "VolumeAttributesClassMissing"
	// ReasonClaimRefused: the API server refuses the change of the claim.
	ReasonClaimRefused = "ClaimRefused"
	// ReasonExpansionInfeasible: the driver will not make the volume as large.
	ReasonExpansionInfeasible = "ExpansionInfeasible"
	// ReasonExpansionFailed: the driver fails to expand the volume, and tries again.
	ReasonExpansionFailed = "ExpansionFailed"
	// ReasonModificationInfeasible: the driver will not give the volume these
	// attributes.
	ReasonModificationInfeasible = "ModificationInfeasible"
	// ReasonModificationFailed: the driver fails to change the attributes of the
	// volume, and tries again.
	ReasonModificationFailed = "ModificationFailed"
	// ReasonClaimOverdue: nothing has come of a change for a long time.
	ReasonClaimOverdue = "ClaimOverdue"
)

// Step is the next step of one claim.
type Step struct {
	State State
	// Claim is the claim; nil while it does not exist.
	Claim *corev1.PersistentVolumeClaim
	// Reason and Message say why, in one word and in a sentence that names the claim.
	// They are empty for a settled claim.
	Reason, Message string
	// Since is when the claim came into this state; zero if it does not tell.
	Since time.Time
	// Until is when time alone changes the step; zero if it does not.
	Until time.Time
	// Patch is set for Changing and Detaching. That of Detaching is a record only, and
	// is written right before the pod is deleted.
	Patch Patch
	// Refused says, for a patch that the API server has refused before, what it said.
	// A pod does not wait for the next try.
	Refused string
	// Foreign is true for a growth under way that another client asked for. A pod does
	// not wait for it: nothing tells how long it has been.
	Foreign bool
	// InFlight is true for a claim of which another part is under way, and for one that
	// was recreated and whose pod has not been ready since.
	InFlight bool
	// Recreates is true for a claim that is, or is to be, recreated: its pod is deleted
	// for that.
	Recreates bool
	// KeepsPod is true while a new pod could not mount the volume: the one that is
	// there must stay.
	KeepsPod bool
}

// The periods after which a claim is taken to need something else.
const (
	// overduePeriod is how long a change may be under way without a word from the
	// driver before the pod does not wait for it any more.
	overduePeriod = 10 * time.Minute
	// remountPeriod is how long a kubelet may take to grow the file system of a
	// mounted volume. It looks at a pod every 60 to 90 seconds.
	remountPeriod = 3 * time.Minute
	// detachPeriod is how long a pod is kept away for the expansion of its volume. The
	// sidecar, which the deletion of a pod does not wake, tries again within five minutes
	// unless it was told otherwise.
	detachPeriod = 6 * time.Minute
	// unmountPeriod is how long a node is given to unmount a volume whose pod was deleted.
	unmountPeriod = 30 * time.Second
	// clockSkew is how far the clocks of the manager and the API server may differ.
	clockSkew = 30 * time.Second
	// inUsePeriod is for how long it is believed that a driver does not expand
	// volumes in use.
	inUsePeriod = 24 * time.Hour
	// classPeriod is after how long a class is looked up again that is missing, or
	// does not allow what is needed.
	classPeriod = time.Minute
	// promptPeriod is how long a note that a pod is to go for its claim is good for.
	promptPeriod = time.Minute
	// silentPeriod is how long an expansion of a volume in use may be under way by a
	// driver that is believed so. The sidecar does not repeat what it said.
	silentPeriod = 30 * time.Second
)

// Next returns the next step of a claim towards its template.
func Next(f Facts, now time.Time) Step {
	if step := f.notThere(); step != nil {
		step.InFlight = f.Recreation != nil && f.Recreation.State == UnderWay
		return *step
	}
	step := f.next(now)
	step.KeepsPod = f.isNotMountable()
	step.InFlight = step.InFlight || f.Recreation != nil && f.Recreation.State == "" || step.State == Blocked && f.isUnderWay(now)
	if step.State != Detaching {
		return step
	}
	if refused := f.refusalOf(step.Patch); refused != nil && now.Before(refused.Until) {
		return f.blockedBy(*refused, step.Patch)
	}
	return step
}

// isUnderWay reports whether a claim is being changed, whatever else keeps it from what its
// template says.
func (f Facts) isUnderWay(now time.Time) bool {
	return f.Claim.Status.Phase == corev1.ClaimBound && (f.grow(now).State == UnderWay || f.modify(now).State == UnderWay)
}

func (f Facts) next(now time.Time) Step {
	if f.Controller != "" {
		return f.leaveAlone()
	}
	if f.Recreation != nil {
		if step := f.recreation(now); step != nil {
			return *step
		}
	}
	if difference := fixedDifference(f.Claim, f.Template); difference != nil {
		return f.step(Blocked, ReasonClaimImmutable, "%v; Kubernetes does not change that in a claim: revert the template (with "+
			"volumeClaimUpdateStrategy OnDelete in the same write), have it recreated with volumeClaimUpdateStrategy Recreate, or delete claim and pod yourself", difference)
	}
	size, attributes := f.grow(now), f.modify(now)
	if f.Claim.Status.Phase != corev1.ClaimBound && (size.State != Settled || attributes.State != Settled) {
		return f.step(Waiting, ReasonClaimNotBound, "it has no volume yet; it is changed when it has")
	}
	if size.State == Changing || attributes.State == Changing {
		return f.change(size, attributes, now)
	}
	if rank(attributes.State) > rank(size.State) {
		return attributes
	}
	return size
}

// leaveAlone returns the step of a claim that belongs to another controller.
func (f Facts) leaveAlone() Step {
	if Compare(f.Claim, f.Template).Compatible {
		return Step{State: Settled, Claim: f.Claim}
	}
	return f.step(Blocked, ReasonClaimControlled, "it is not what its template says, and belongs to %s, so it is not changed: take that off its "+
		"metadata.ownerReferences, or delete claim and pod yourself", f.Controller)
}

// notThere returns the step of a claim that is not there to be changed.
func (f Facts) notThere() *Step {
	switch {
	case f.Claim == nil:
		return &Step{State: Waiting, Reason: ReasonClaimMissing}
	case f.Claim.DeletionTimestamp != nil:
		step := f.step(Waiting, ReasonClaimTerminating, "it is being deleted")
		return &step
	default:
		return nil
	}
}

// rank orders states by what they ask for first.
func rank(state State) int {
	switch state {
	case Settled:
		return 0
	case Waiting:
		return 1
	case Blocked:
		return 2
	case Detaching:
		return 3
	case UnderWay:
		return 4
	case Changing:
		return 5
	default:
		return 0
	}
}

// lookAgain returns the step of a claim that is blocked by a class, which others may
// create or change at any time.
func (f Facts) lookAgain(now time.Time, reason, format string, args ...any) Step {
	step := f.step(Blocked, reason, format, args...)
	step.Until = now.Add(classPeriod)
	return step
}

// change makes one patch of both parts: drivers that count changes of a volume
// would refuse the second one for hours.
//
// The API server accepts all of a patch or nothing: where it refuses both parts, they
// come alone.
func (f Facts) change(size, attributes Step, now time.Time) Step {
	patch := Patch{}
	if size.State == Changing {
		patch.Size = size.Patch.Size
	}
	if attributes.State == Changing {
		patch.AttributesClass = attributes.Patch.AttributesClass
	}
	for _, part := range []Patch{patch, {AttributesClass: patch.AttributesClass}, {Size: patch.Size}} {
		refused := f.refusalOf(part)
		if !part.IsEmpty() && (refused == nil || !now.Before(refused.Until)) {
			return f.write(part, size.State == UnderWay || attributes.State == UnderWay, now)
		}
	}
	return f.blockedBy(*f.refusalOf(patch), patch)
}

// write returns the step that writes a patch.
func (f Facts) write(patch Patch, inFlight bool, now time.Time) Step {
	patch.Record = newRecord(patch, RecordOf(f.Claim), now)
	if f.showsInUse() {
		// The sidecar does not say it again of another size.
		patch.Record.InUseTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
	}
	if f.isUsed() && patch.Size != nil {
		patch.Record.DetachTimestamp = nil // its pod was back before this was asked
	}
	step := f.step(Changing, ReasonClaimChanging, "%s", patch)
	step.Patch, step.InFlight = patch, inFlight
	if refused := f.refusalOf(patch); refused != nil {
		step.Refused = f.blockedBy(*refused, patch).Message
	}
	return step
}

// blockedBy returns the step of a claim whose patch the API server has refused.
func (f Facts) blockedBy(refused Refusal, patch Patch) Step {
	step := f.step(Blocked, ReasonClaimRefused, "the API server refuses to change its %s: %s", patch, refused.Message)
	step.Until = refused.Until
	return step
}

// refusalOf returns what the API server said to a patch; nil if it did not refuse
// it.
func (f Facts) refusalOf(patch Patch) *Refusal {
	for i := range f.Refused {
		if f.Refused[i].Key == patch.Key() {
			return &f.Refused[i]
		}
	}
	return nil
}
