// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// Reasons why a claim is not recreated.
const (
	// ReasonRecreateNotPermitted: the manager may act in namespaces only, and volumes
	// belong to the cluster.
	ReasonRecreateNotPermitted = "RecreateNotPermitted"
	// ReasonSnapshotsNotServed: the API server does not serve snapshots.
	ReasonSnapshotsNotServed = "SnapshotsNotServed"
	// ReasonClaimHasFinalizers: the claim has finalizers of others.
	ReasonClaimHasFinalizers = "ClaimHasFinalizers"
	// ReasonVolumeTerminating: a user has deleted the volume while a claim has it.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonVolumeNotCSI: the volume is none of a CSI driver, which could take snapshots.
	ReasonVolumeNotCSI = "VolumeNotCSI"
	// ReasonSnapshotClassMissing: there is no VolumeSnapshotClass.
	ReasonSnapshotClassMissing = "SnapshotClassMissing"
	// ReasonSnapshotClassMismatch: the VolumeSnapshotClass is of another driver.
	ReasonSnapshotClassMismatch = "SnapshotClassMismatch"
	// ReasonDriverDiffers: the new storage class is of another driver, which cannot
	// restore the snapshots of this one.
	ReasonDriverDiffers = "DriverDiffers"
	// ReasonVolumeModeChanged: no snapshot turns a file system into a block device.
	ReasonVolumeModeChanged = "VolumeModeChanged"
	// ReasonQuotaExceeded: a ResourceQuota has no room for the new claim.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonCapacityTooSmall: the storage has no room for the new volume.
	ReasonCapacityTooSmall = "CapacityTooSmall"
	// ReasonTopologyDiffers: the new storage class makes volumes only where the old
	// one cannot be reached.
	ReasonTopologyDiffers = "TopologyDiffers"
	// ReasonRecreateFailedBefore: it has failed for another claim of the template.
	ReasonRecreateFailedBefore = "RecreateFailedBefore"
	// ReasonUndoWaits: the pod of the claim is not to be moved now.
	ReasonUndoWaits = "UndoWaits"
	// ReasonUndoRefused: there is no such volume to be given back.
	ReasonUndoRefused = "UndoRefused"
)

// PreflightFacts is what is known of a claim that would be recreated.
type PreflightFacts struct {
	Claim, Template *corev1.PersistentVolumeClaim
	Strategy        appsv1beta1.VolumeClaimUpdateStrategy
	// Owner is the UID of the workload.
	Owner types.UID
	// Volume is the volume of the claim, and Held those that were held for it.
	Volume *Volume
	Held   []Volume
	// ClassName is the storage class of the new claim, and Class that class; nil if it
	// does not exist.
	ClassName string
	Class     *storagev1.StorageClass
	// Capacities are those of the storage class.
	Capacities []storagev1.CSIStorageCapacity
	// SnapshotsServed is true where the API server serves snapshots, and SnapshotClasses
	// are all there are.
	SnapshotsServed bool
	SnapshotClasses []snapshotv1.VolumeSnapshotClass
	// HasSnapshot is true when the snapshot has been taken already, and RestoreSize the
	// size that it restores to; nil if it does not tell.
	HasSnapshot bool
	RestoreSize *resource.Quantity
	// Quotas are those of the namespace.
	Quotas []corev1.ResourceQuota
	// Failed is the name of another claim of the template for which the same was tried,
	// and failed; empty if there is none.
	Failed string
	// OtherUsers are the pods that use the claim beside the one that it was made for.
	OtherUsers []string
	// Node is the node of the pod; empty if it has none.
	Node string
}

// Refusal says why a claim is not recreated.
type Refusal struct {
	Reason, Message string
}

// Judgement is what Preflight says.
type Judgement struct {
	// Refused is nil if the claim can be recreated.
	Refused *Refusal
	// Source, SnapshotClass, Volume and Key are for the Attempt.
	Source                appsv1beta1.VolumeClaimRecreateSource
	SnapshotClass, Volume string
	Key                   string
	// Trial is what can be tried before the pod is stopped, and Node where the new volume
	// is to be made.
	Trial appsv1beta1.RecreateTrialType
	Node  string
}

func refuse(reason, format string, args ...any) Judgement {
	return Judgement{Refused: &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// Preflight tells whether a claim can be recreated, as far as that can be known before
// its pod is stopped.
func Preflight(f PreflightFacts) Judgement {
	for _, check := range []func() *Refusal{f.usage, f.finalizers} {
		if refused := check(); refused != nil {
			return Judgement{Refused: refused}
		}
	}
	if attempt := volumes.RecordOf(f.Claim).Recreate; attempt != nil && attempt.Source == appsv1beta1.VolumeRecreateSource {
		return f.backTo(attempt.Volume)
	}
	if AsksForUndo(f.Claim) {
		return f.undo()
	}
	if entry := unrestored(volumes.RecordOf(f.Claim)); entry != nil && GivesBack(f.Claim) {
		return f.backTo(entry.Name)
	} else if entry != nil {
		return refuse(ReasonVolumeNotRestored, "%s", wordsOfNotRestored(entry))
	}
	key := KeyOf(f.Template, f.Strategy)
	if failed := volumes.RecordOf(f.Claim).RecreateFailure; failed != nil && failed.Key == key {
		return refuse(failed.Reason, "%s; revert its template, or change that or volumeClaimUpdateStrategy.recreate to have it tried again", failed.Message)
	}
	if f.Failed != "" {
		return refuse(ReasonRecreateFailedBefore, "that failed for claim %s: revert the template, or change that or volumeClaimUpdateStrategy.recreate to have it tried again", f.Failed)
	}
	judgement := f.source()
	for _, check := range []func() *Refusal{f.class, f.topology, f.capacity, f.quota} {
		if judgement.Refused == nil {
			judgement.Refused = check()
		}
	}
	if judgement.Source == appsv1beta1.SnapshotRecreateSource && judgement.Refused == nil && !f.HasSnapshot {
		judgement.Refused = f.snapshotQuota()
	}
	judgement.Key = key
	if judgement.Source == appsv1beta1.SnapshotRecreateSource {
		judgement.Trial = f.trial()
	}
	judgement.Node = f.place()
	return judgement
}

// place returns the node for which the new volume is made, where its class waits for a
// pod: that of the pod that has the old one. Then the scheduler does not place the new pod
// on a node without the driver, or where the snapshot cannot be restored.
func (f PreflightFacts) place() string {
	if f.waits() {
		return f.Node
	}
	return ""
}

func (f PreflightFacts) waits() bool {
	return f.Class != nil && ptr.Deref(f.Class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// trial returns what can be tried before the pod is stopped.
func (f PreflightFacts) trial() appsv1beta1.RecreateTrialType {
	trial := f.Strategy.GetRecreate().Trial
	if trial == appsv1beta1.RestoreRecreateTrial && (f.waits() && f.Node == "" || f.Volume == nil || f.trialQuota() != nil) {
		return appsv1beta1.SnapshotRecreateTrial
	}
	return trial
}

// source decides what the claim is recreated from.
func (f PreflightFacts) source() Judgement {
	if f.Volume == nil {
		return refuse(volumes.ReasonClaimNotBound, "it has no volume")
	}
	if f.Volume.DeletionTimestamp != nil {
		return refuse(ReasonVolumeTerminating, "its volume %s is marked for deletion, and would go with its claim", f.Volume.Name)
	}
	class, refused, why := f.snapshotClass()
	switch {
	case refused != nil:
		return Judgement{Refused: refused}
	case why == nil:
		return Judgement{Source: appsv1beta1.SnapshotRecreateSource, SnapshotClass: class}
	case f.Strategy.GetRecreate().WithoutSnapshot == appsv1beta1.EmptyWithoutSnapshot:
		return Judgement{Source: appsv1beta1.EmptyRecreateSource}
	default:
		return refuse(why.Reason, "%s; revert the template, or have it recreated empty with recreate.withoutSnapshot: Empty", why.Message)
	}
}

// snapshotClass returns the class of the snapshot of the claim. refused says what is wrong
// with what the user asks for, and why that there can be no snapshot to restore from.
func (f PreflightFacts) snapshotClass() (name string, refused, why *Refusal) {
	driver := f.driver()
	mode := ptr.Deref(f.Template.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	switch {
	case mode != ptr.Deref(f.Claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem):
		return "", nil, &Refusal{ReasonVolumeModeChanged, "its volumeMode would become " + string(mode) + ", and no snapshot is restored to another"}
	case driver == "":
		return "", nil, &Refusal{ReasonVolumeNotCSI, "its volume " + f.Volume.Name + " is none of a CSI driver, and has no snapshots"}
	case f.Class != nil && f.Class.Provisioner != driver:
		message := fmt.Sprintf("storage class %s is of driver %s, its volume of %s, whose snapshots no other restores", f.Class.Name, f.Class.Provisioner, driver)
		return "", nil, &Refusal{ReasonDriverDiffers, message}
	case !f.SnapshotsServed:
		return "", nil, &Refusal{ReasonSnapshotsNotServed, "the API server serves no VolumeSnapshots: install the CRDs and the controller of external-snapshotter"}
	}
	if wanted := f.Strategy.GetRecreate().VolumeSnapshotClassName; wanted != "" {
		return wanted, f.named(wanted, driver), nil
	}
	return f.byDefault(driver)
}

// named checks the VolumeSnapshotClass that the strategy names.
func (f PreflightFacts) named(wanted, driver string) *Refusal {
	for _, class := range f.SnapshotClasses {
		if class.Name == wanted && class.Driver != driver {
			return &Refusal{
				ReasonSnapshotClassMismatch,
				fmt.Sprintf("VolumeSnapshotClass %s of recreate.volumeSnapshotClassName is of driver %s, its volume of %s", wanted, class.Driver, driver),
			}
		}
		if class.Name == wanted {
			return nil
		}
	}
	return &Refusal{ReasonSnapshotClassMissing, "there is no VolumeSnapshotClass " + wanted + ", which recreate.volumeSnapshotClassName says"}
}

// isDefaultSnapshotClass is the annotation of the class for snapshots that name none.
//
// Source: https://kubernetes.io/docs/concepts/storage/volume-snapshot-classes/
const isDefaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class"

// byDefault returns the default VolumeSnapshotClass of a driver.
func (f PreflightFacts) byDefault(driver string) (name string, refused, why *Refusal) {
	var names []string
	for _, class := range f.SnapshotClasses {
		if class.Driver == driver && class.Annotations[isDefaultSnapshotClass] == "true" {
			names = append(names, class.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", nil, &Refusal{ReasonSnapshotClassMissing, "there is no default VolumeSnapshotClass of driver " + driver + ": name one in recreate.volumeSnapshotClassName"}
	case 1:
		return names[0], nil, nil
	default:
		slices.Sort(names)
		message := fmt.Sprintf("driver %s has %d default VolumeSnapshotClasses, %s: name one in recreate.volumeSnapshotClassName", driver, len(names), strings.Join(names, ", "))
		return "", &Refusal{ReasonSnapshotClassMissing, message}, nil
	}
}

// driver returns the CSI driver of the volume; empty if it is none of one.
func (f PreflightFacts) driver() string {
	if f.Volume.Spec.CSI != nil {
		return f.Volume.Spec.CSI.Driver
	}
	return ""
}

func (f PreflightFacts) usage() *Refusal {
	if len(f.OtherUsers) == 0 {
		return nil
	}
	return &Refusal{ReasonClaimInUse, "pod " + f.OtherUsers[0] + " uses it as well, and would go on writing: delete that"}
}

// finalizers refuses a claim that another controller would keep when it is deleted: it
// would be neither there nor gone, and could not be taken back.
func (f PreflightFacts) finalizers() *Refusal {
	for _, name := range f.Claim.Finalizers {
		if name != "kubernetes.io/pvc-protection" && name != beingSavedFinalizer {
			return &Refusal{ReasonClaimHasFinalizers, "finalizer " + name + " would keep it when it is deleted to be recreated"}
		}
	}
	return nil
}

func (f PreflightFacts) class() *Refusal {
	switch {
	case f.ClassName == "":
		return &Refusal{volumes.ReasonStorageClassMissing, "its template asks for no storage class, so there would be nothing to make its new volume"}
	case f.Class == nil:
		return &Refusal{volumes.ReasonStorageClassMissing, "there is no storage class " + f.ClassName}
	case f.Class.Provisioner == "kubernetes.io/no-provisioner":
		return &Refusal{volumes.ReasonStorageClassMissing, "storage class " + f.ClassName + " makes no volumes"}
	default:
		return nil
	}
}

// size is how large the new volume has to be. What a snapshot restores to is known
// when there is one, and is the size of the volume as a rule.
func (f PreflightFacts) size() resource.Quantity {
	size := f.Template.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, least := range []*resource.Quantity{ptr.To(f.Volume.Spec.Capacity[corev1.ResourceStorage]), f.RestoreSize} {
		if least != nil && least.Cmp(size) > 0 {
			size = *least
		}
	}
	return size
}

// capacity refuses what the driver has told that it has no room for.
//
// Source: https://kubernetes.io/docs/concepts/storage/storage-capacity/
func (f PreflightFacts) capacity() *Refusal {
	size, told, most := f.size(), false, resource.Quantity{}
	for _, capacity := range f.Capacities {
		room := capacity.MaximumVolumeSize
		if room == nil {
			room = capacity.Capacity
		}
		if capacity.StorageClassName != f.ClassName || room == nil {
			continue
		}
		told = true
		if room.Cmp(most) > 0 {
			most = *room
		}
	}
	if !told || most.Cmp(size) >= 0 {
		return nil
	}
	return &Refusal{
		ReasonCapacityTooSmall,
		fmt.Sprintf("it needs %s of storage class %s, of which there are %s at the most anywhere", size.String(), f.ClassName, most.String()),
	}
}

// undo judges the request for an earlier volume.
func (f PreflightFacts) undo() Judgement { return f.backTo(undoOf(f.Claim)) }

// backTo judges whether a claim can have an earlier volume back.
func (f PreflightFacts) backTo(wanted string) Judgement {
	var names []string
	for _, held := range f.Held {
		if !held.IsHeldFor(f.Claim.Namespace, f.Claim.Name) || !held.isFree() {
			continue
		}
		if held.Name == wanted && !held.isOf(f.Owner) {
			return refuse(ReasonHeldForAnother, "%s", whoseIs(held, f.Owner))
		}
		if held.Name == wanted && f.Volume != nil && f.Volume.DeletionTimestamp == nil {
			if refused := f.quotaFor(volumehelpers.GetPersistentVolumeClass(held.PersistentVolume), held.Spec.Capacity[corev1.ResourceStorage]); refused != nil {
				return Judgement{Refused: refused}
			}
			return Judgement{Source: appsv1beta1.VolumeRecreateSource, Volume: wanted, Key: KeyOf(f.Template, f.Strategy)}
		}
		names = append(names, held.Name)
	}
	has := "there is none"
	if len(names) > 0 {
		has = "there are " + strings.Join(names, ", ") + ", and " + appsv1beta1.UndoRecreatePrevious + " means the last one that it replaced"
	}
	return refuse(ReasonUndoRefused, "annotation %s asks for volume %q, which is not held for it, or not to be had; %s", appsv1beta1.UndoRecreateAnnotation, wanted, has)
}

// HasFailed reports whether what is wanted of a claim was tried before, and failed
// for reasons that the next claim of the template would meet as well.
func HasFailed(claim, template *corev1.PersistentVolumeClaim, strategy appsv1beta1.VolumeClaimUpdateStrategy) bool {
	failed := volumes.RecordOf(claim).RecreateFailure
	isOfAll := failed != nil && (failed.Reason == ReasonRecreateTimedOut || failed.Reason == ReasonDriverFails)
	return isOfAll && failed.Key == KeyOf(template, strategy)
}

// Begin returns the attempt to recreate a claim, which was judged possible. It begins
// while the pod runs, where a snapshot can be tried.
// held are the volumes that are held for claims of its name, whoever made those.
func Begin(claim *corev1.PersistentVolumeClaim, held []Volume, j Judgement, now time.Time) Attempt {
	a := Attempt{
		Number: 1, Source: j.Source, ClaimUID: claim.UID, SnapshotClass: j.SnapshotClass, Volume: j.Volume,
		Key: j.Key, Node: j.Node, StartTimestamp: metav1.NewTime(now).Rfc3339Copy(),
	}
	for _, entry := range volumes.RecordOf(claim).HeldVolumes {
		a.Number = max(a.Number, entry.Number+1)
	}
	for _, volume := range held {
		if volume.IsHeldFor(claim.Namespace, claim.Name) {
			a.Number = max(a.Number, volume.State.Recreate.Number+1)
		}
	}
	if j.Source == appsv1beta1.SnapshotRecreateSource {
		hash := hashOf(string(claim.UID), claim.ResourceVersion)
		a.Snapshot = shorten(claim.Name, maxNameLength-len(hash)-len("-trial-")) + "-" + hash
		if j.Trial != appsv1beta1.NoRecreateTrial {
			a.Trial = a.Snapshot + trialSuffix
		}
		if j.Trial == appsv1beta1.RestoreRecreateTrial {
			a.TrialClaim = a.Trial
		}
	}
	return a
}

// Stop returns the attempt for which a pod is stopped now, that may take its grace period.
func Stop(a Attempt, pod *corev1.Pod, now time.Time) Attempt {
	if a.Pod == "" {
		a.Pod, a.StartTimestamp = pod.UID, metav1.NewTime(now).Rfc3339Copy()
		a.GraceSeconds = ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
		if a.Node != "" && pod.Spec.NodeName != "" {
			a.Node = pod.Spec.NodeName
		}
	}
	return a
}

// maxNameLength is how long the name of an object may be.
const maxNameLength = 253

// madeFor names what a template says and Kubernetes never changes in a claim.
func madeFor(template *corev1.PersistentVolumeClaim) string {
	class := "any"
	if volumes.NamesClass(template) {
		class = "=" + volumehelpers.GetPersistentVolumeClaimClass(template)
	}
	text, _ := json.Marshal([]any{class, template.Spec.VolumeMode, template.Spec.AccessModes})
	return hashOf(string(text))
}

// KeyOf names what is wanted of a claim: what failed is tried again when it changes.
func KeyOf(template *corev1.PersistentVolumeClaim, strategy appsv1beta1.VolumeClaimUpdateStrategy) string {
	spec, recreate := template.Spec, strategy.GetRecreate()
	wanted := []any{
		template.Annotations[corev1.BetaStorageClassAnnotation], spec.StorageClassName, spec.VolumeMode, spec.AccessModes,
		recreate.VolumeSnapshotClassName, recreate.TimeoutSeconds, recreate.WithoutSnapshot,
	}
	if recreate.Trial != appsv1beta1.RestoreRecreateTrial { // what failed before there were others stays failed
		wanted = append(wanted, recreate.Trial)
	}
	text, _ := json.Marshal(wanted)
	return hashOf(string(text))
}
