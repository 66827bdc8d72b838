// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of claims that are recreated. That no byte is lost is asserted by
// dataLaw.

// judgeRecreation asserts what a single write could break of claims and volumes.
func (l *law) judgeRecreation(w write) {
	if l.world.storage == nil {
		return
	}
	switch {
	case w.isAbout("delete PersistentVolumeClaim"):
		l.checkClaimDeletion(w)
	case w.isAbout("create PersistentVolumeClaim"):
		l.checkClaimCreation(w)
	case w.isAbout("patch PersistentVolume"):
		l.checkVolumeChange(w)
	case w.isAbout("delete VolumeSnapshot"):
		l.checkSnapshotDeletion(w)
	case w.isAbout("delete PersistentVolume"), w.isAbout("delete VolumeSnapshotContent"):
		l.world.violate("%s", w.words)
	}
}

// checkClaimDeletion asserts that a claim is deleted only when its volume is held, no
// pod uses it, and what is in it is where the next one is made from.
func (l *law) checkClaimDeletion(w write) {
	claim, ok := w.before.(*corev1.PersistentVolumeClaim)
	if !ok {
		return
	}
	s := l.world.storage
	v := s.volumes[claim.UID]
	if isOnTrial(claim) {
		if len(s.podsWith(claim.Name)) > 0 {
			l.world.violate("%s, which a pod names", w.words)
		}
		return
	}
	l.data.deleted.Insert(claim.UID)
	if v == nil {
		if claim.Annotations[appsv1beta1.RestoredFromAnnotation] == "" && !l.isAwaited(claim.Name) {
			l.world.violate("%s, which waits for a volume, and nothing is held for it", w.words)
		}
		return
	}
	held, pv := heldState(l.world, v.name), s.volumeNamed(v.name)
	switch {
	case held == nil || held.Claim != claim.Name || held.ClaimUID != claim.UID || held.ProvedTimestamp != nil:
		l.world.violate("%s, whose volume %s is not held", w.words, v.name)
	case pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		l.world.violate("%s, whose volume %s would be deleted", w.words, v.name)
	case s.isScheduledFor(claim.Name):
		l.world.violate("%s while a pod uses it", w.words)
	case held.Recreate.Source == appsv1beta1.SnapshotRecreateSource:
		l.checkSaved(w, held, v)
	case held.Recreate.Source == appsv1beta1.EmptyRecreateSource && !l.data.emptied:
		l.world.violate("%s for an empty one, which no user allows", w.words)
	case held.Recreate.Source == appsv1beta1.VolumeRecreateSource && s.disks[held.Recreate.Volume] == nil:
		l.world.violate("%s for volume %s, which is not there", w.words, held.Recreate.Volume)
	}
}

// isOnTrial reports whether a snapshot is restored to a claim only to see whether it can
// be. No pod is to name it.
func isOnTrial(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[appsv1beta1.RecreateOfAnnotation] != "" && strings.HasSuffix(claim.Name, "-trial")
}

// checkSaved asserts that a snapshot can be used, and holds all that is in a volume.
func (l *law) checkSaved(w write, held *appsv1beta1.HeldVolumeState, v *volume) {
	s := l.world.storage
	snapshot := s.snapshotNamed(held.Recreate.Snapshot)
	if snapshot == nil || !isUsable(snapshot) || snapshot.DeletionTimestamp != nil {
		l.world.violate("%s, whose snapshot %s cannot be used", w.words, held.Recreate.Snapshot)
		return
	}
	image := s.images[contentName(snapshot)]
	if missing := len(v.written) - sets.New(v.written...).Intersection(sets.New(image.written...)).Len(); missing > 0 {
		l.world.violate("%s, whose snapshot lacks %d writes of %d", w.words, missing, len(v.written))
	}
}

// isAwaited reports whether a volume is held for a claim that is being recreated.
func (l *law) isAwaited(claim string) bool {
	for _, v := range l.world.storage.disks {
		if held := heldState(l.world, v.name); held != nil && held.Claim == claim && held.ProvedTimestamp == nil {
			return true
		}
	}
	return false
}

// checkClaimCreation asserts that a claim whose data is expected starts with it.
func (l *law) checkClaimCreation(w write) {
	claim, ok := get[*corev1.PersistentVolumeClaim](l.world.server, w.obj.GetName())
	s := l.world.storage
	if !ok {
		return
	}
	var from bytes
	switch {
	case claim.Spec.VolumeName != "":
		if v := s.disks[claim.Spec.VolumeName]; v != nil {
			from = v.written
		}
	case claim.Spec.DataSource != nil:
		if image := s.sourceOf(claim); image != nil {
			from = image.written
		}
	}
	missing := l.data.missing(claim.Name, from)
	isEmptied := l.data.emptied && claim.Spec.DataSource == nil && claim.Spec.VolumeName == ""
	if len(missing) > 0 && !l.data.undone.Has(claim.Name) && !isEmptied {
		l.world.violate("%s, which would lack %d writes: source %v, volume %q", w.words, len(missing), claim.Spec.DataSource, claim.Spec.VolumeName)
	}
}

// checkVolumeChange asserts that the operator releases a volume only where nothing needs it.
func (l *law) checkVolumeChange(w write) {
	l.checkKeepers(w)
	before, was := w.before.(*corev1.PersistentVolume)
	after, is := get[*corev1.PersistentVolume](l.world.server, w.obj.GetName())
	if !was || !is {
		return
	}
	if claim := l.world.storage.claimOfVolume(before); claim != nil && after.Spec.ClaimRef.UID != claim.UID {
		l.world.violate("%s takes it from claim %s, which is there", w.words, claim.Name)
	}
	l.checkProved(w, before, after)
	retain := corev1.PersistentVolumeReclaimRetain
	if before.Spec.PersistentVolumeReclaimPolicy != retain || after.Spec.PersistentVolumeReclaimPolicy == retain {
		return
	}
	claim := l.world.storage.claimOfVolume(after)
	if claim != nil && (claim.DeletionTimestamp == nil || !l.data.deleted.Has(claim.UID)) {
		return // it has its volume back, or keeps it
	}
	held, strategy := heldState(l.world, after.Name), l.claimStrategy()
	switch {
	case held == nil || held.ProvedTimestamp == nil:
		l.world.violate("%s lets it be deleted, and nothing has proved that it is not needed", w.words)
	case l.isOnlyCopy(after.Name):
		l.world.violate("%s lets it be deleted, and what is in it is nowhere else", w.words)
	case strategy.Recreate == nil || strategy.Recreate.OldVolume != appsv1beta1.DeleteRecreateRetention:
		l.world.violate("%s lets it be deleted, which no user asks for", w.words)
	case strategy.Recreate.HoldSeconds == nil || l.world.clock.Now().Before(held.ProvedTimestamp.Add(time.Duration(*strategy.Recreate.HoldSeconds)*time.Second)):
		l.world.violate("%s lets it be deleted before its time", w.words)
	}
}

// isOnlyCopy reports whether something was written to a volume that is in no other one.
func (l *law) isOnlyCopy(volume string) bool {
	others := sets.New[int]()
	for name, v := range l.world.storage.disks {
		if name != volume {
			others.Insert(v.written...)
		}
	}
	v := l.world.storage.disks[volume]
	return v != nil && !others.HasAll(v.written...)
}

// checkProved asserts that a volume counts as replaced when a pod runs without it.
func (l *law) checkProved(w write, before, after *corev1.PersistentVolume) {
	held := heldState(l.world, after.Name)
	text := before.Annotations[appsv1beta1.HeldVolumeStateKey]
	if held == nil || held.ProvedTimestamp == nil || strings.Contains(text, `"provedTimestamp"`) {
		return
	}
	_, name := splitClaim(held.Claim)
	pod := l.seen[name]
	claim, there := get[*corev1.PersistentVolumeClaim](l.world.server, held.Claim) // it is not read from a cache
	if pod == nil || !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) || !there || claim.Status.Phase != corev1.ClaimBound || claim.UID == held.ClaimUID {
		l.world.violate("%s takes it as replaced, and no pod runs without it", w.words)
	}
}

// checkSnapshotDeletion asserts that only snapshots are deleted that were taken to
// recreate claims, and that no claim needs.
func (l *law) checkSnapshotDeletion(w write) {
	snapshot, ok := w.before.(*snapshotv1.VolumeSnapshot)
	if !ok {
		return
	}
	if snapshot.Annotations[appsv1beta1.RecreateOfAnnotation] == "" {
		l.world.violate("%s, which another client has taken", w.words)
	}
	for _, v := range l.world.storage.disks {
		held := heldState(l.world, v.name)
		if held == nil || held.ProvedTimestamp != nil || held.Recreate.Source != appsv1beta1.SnapshotRecreateSource || held.Recreate.Snapshot != snapshot.Name {
			continue
		}
		if claim, there := get[*corev1.PersistentVolumeClaim](l.world.server, held.Claim); !there || l.world.storage.volumes[claim.UID] == nil {
			l.world.violate("%s, which claim %s is to be made from", w.words, held.Claim)
		}
	}
}

// mayStopFor reports whether a pod may be stopped for a claim to be recreated, or to
// have an earlier volume back.
func (l *law) mayStopFor(claim, template *corev1.PersistentVolumeClaim) bool {
	if claim.Annotations[appsv1beta1.UndoRecreateAnnotation] != "" || recordOf(claim).Recreate != nil {
		return true
	}
	return l.claimStrategy().Type == appsv1beta1.RecreateVolumeClaimUpdateStrategyType && differs(claim, template) && l.world.refusesRecreation(claim, template) == ""
}

// differs reports whether a claim is what Kubernetes does not make of it what its
// template says.
func differs(claim, template *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(claim.Spec.StorageClassName, "") != ptr.Deref(template.Spec.StorageClassName, ptr.Deref(claim.Spec.StorageClassName, "")) ||
		!sets.New(claim.Spec.AccessModes...).Equal(sets.New(template.Spec.AccessModes...)) || modeOf(claim) != modeOf(template)
}

func modeOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeMode {
	return ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

// refusesRecreation says why a claim cannot be recreated, as far as that can be known
// beforehand; empty if it can.
func (w *World) refusesRecreation(claim, template *corev1.PersistentVolumeClaim) string {
	s := w.storage
	class, exists := get[*storagev1.StorageClass](w.server, ptr.Deref(template.Spec.StorageClassName, ptr.Deref(claim.Spec.StorageClassName, "")))
	if !exists {
		return "there is no such storage class"
	}
	if w.isVolumeDeleted(claim.Spec.VolumeName) {
		return "its volume is being deleted"
	}
	if given := w.server.admission.rewrites.class; given != "" && given != class.Name {
		return "admission gives all new claims another class"
	}
	strategy := ptr.Deref(w.claimStrategy().Recreate, appsv1beta1.VolumeClaimRecreateStrategy{})
	without := s.withoutSnapshot(claim, template, class)
	if without == "" {
		snapshotClass := s.classOfSnapshot(&snapshotv1.VolumeSnapshot{Spec: snapshotv1.VolumeSnapshotSpec{VolumeSnapshotClassName: nonEmpty(strategy.VolumeSnapshotClassName)}})
		switch {
		case snapshotClass == nil && strategy.VolumeSnapshotClassName == "":
			without = "there is no default class of snapshots"
		case snapshotClass == nil:
			return "there is no such class of snapshots"
		case snapshotClass.Driver != s.provisionerOf(claim):
			return "the class of snapshots is of another driver"
		}
	}
	if without != "" && strategy.WithoutSnapshot != appsv1beta1.EmptyWithoutSnapshot {
		return without
	}
	return s.lacksQuota(claim, template)
}

// withoutSnapshot says why a claim cannot be recreated from a snapshot.
func (s *storage) withoutSnapshot(claim, template *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	switch {
	case s.unserved:
		return "the server knows of no snapshots"
	case modeOf(claim) != modeOf(template):
		return "its mode is another"
	case class.Provisioner != s.provisionerOf(claim):
		return "its driver is another"
	default:
		return ""
	}
}

func nonEmpty(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

// lacksQuota says which quota leaves no room for a claim in place of another.
func (s *storage) lacksQuota(claim, template *corev1.PersistentVolumeClaim) string {
	used := s.used()
	for name, charge := range chargeOf(claim) {
		sum := used[name]
		sum.Sub(charge)
		used[name] = sum
	}
	again := template.DeepCopy()
	if compare(requestOf(again), capacityOf(claim)) < 0 {
		again.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: capacityOf(claim)}
	}
	charges := chargeOf(again)
	maps.Copy(charges, chargeOf(&snapshotv1.VolumeSnapshot{}))
	for _, quota := range all[*corev1.ResourceQuota](s.world.server) {
		for name, hard := range quota.Spec.Hard {
			charge, counts := charges[name]
			sum := used[name]
			sum.Add(charge)
			if counts && compare(sum, hard) > 0 {
				return fmt.Sprintf("quota %s has no room for %s", quota.Name, name)
			}
		}
	}
	return ""
}

func (s *storage) volumeNamed(name string) *corev1.PersistentVolume {
	pv, _ := get[*corev1.PersistentVolume](s.world.server, name)
	return pv
}

// whatIsLeftOver says what there is at rest of volumes, snapshots and claims that
// nothing asks for.
func (l *law) whatIsLeftOver(set *appsv1beta1.StatefulSet) []string {
	w := l.world
	if w.storage == nil || w.settings.clones.is() {
		return nil
	}
	kept, claims := sets.New[string](), all[*corev1.PersistentVolumeClaim](w.server)
	var left []string
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		claim := claims[name]
		if isOnTrial(claim) && !slices.Contains(w.unasked, name) {
			left = append(left, "claim "+name+" is left over")
		}
		kept.Insert("volume " + claim.Spec.VolumeName)
		for _, entry := range recordOf(claim).HeldVolumes {
			kept.Insert("volume "+entry.Name, "snapshot "+entry.Snapshot)
			left = append(left, l.whatIsHeldTooLong(claim, entry, l.isWanted(set, claim))...)
		}
		if l.isWanted(set, claim) {
			left = append(left, l.whatIsNotEnded(claim)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.storage.disks)) {
		v := w.storage.disks[name]
		if _, byHand := w.hands.made[w.storage.volumeNamed(name).UID]; byHand {
			continue
		}
		if held := heldState(w, name); !kept.Has("volume "+name) && !l.isExcused(set, v.claim) && !w.drivers(v).retains {
			left = append(left, fmt.Sprintf("volume %s of claim %s is left over, held: %+v", name, v.claim, held))
		}
	}
	return append(left, l.snapshotsLeftOver(set, kept)...)
}

// snapshotsLeftOver says what snapshots there are at rest that were taken to recreate
// claims, and that nothing keeps.
func (l *law) snapshotsLeftOver(set *appsv1beta1.StatefulSet, kept sets.Set[string]) []string {
	w := l.world
	var left []string
	snapshots := all[*snapshotv1.VolumeSnapshot](w.server)
	for _, name := range slices.Sorted(maps.Keys(snapshots)) {
		claim := ptr.Deref(snapshots[name].Spec.Source.PersistentVolumeClaimName, "")
		isKept := kept.Has("snapshot "+name) || l.data.used.Has(name) && l.data.keeps
		if snapshots[name].Annotations[appsv1beta1.RecreateOfAnnotation] != "" && !isKept && !l.isExcused(set, claim) && !w.storage.hasLeft(claim) {
			left = append(left, "snapshot "+name+" is left over")
		}
	}
	return left
}

// whatIsHeldTooLong says what there still is of a held volume whose time is over.
func (l *law) whatIsHeldTooLong(claim *corev1.PersistentVolumeClaim, entry appsv1beta1.HeldVolume, isWanted bool) []string {
	w := l.world
	var left []string
	if w.storage.disks[entry.Name] == nil && !l.data.dropped.Has(entry.Name) {
		left = append(left, "claim "+claim.Name+" names volume "+entry.Name+", which is not there")
	}
	strategy := ptr.Deref(w.claimStrategy().Recreate, appsv1beta1.VolumeClaimRecreateStrategy{})
	period := time.Duration(ptr.Deref(strategy.HoldSeconds, 86400)+60) * time.Second
	isOver := entry.SinceTimestamp != nil && entry.Source == appsv1beta1.SnapshotRecreateSource && w.clock.Now().After(entry.SinceTimestamp.Add(period))
	if !isOver || !isWanted || claim.DeletionTimestamp != nil { // what a user deletes may be wanted back
		return left
	}
	if strategy.OldVolume == appsv1beta1.DeleteRecreateRetention {
		left = append(left, "claim "+claim.Name+" has volume "+entry.Name+" for too long")
	}
	if strategy.Snapshot == appsv1beta1.DeleteRecreateRetention && entry.Snapshot != "" {
		left = append(left, "claim "+claim.Name+" has snapshot "+entry.Snapshot+" for too long")
	}
	return left
}

// whatIsNotEnded says what there is of a recreation that should be over.
func (l *law) whatIsNotEnded(claim *corev1.PersistentVolumeClaim) []string {
	var left []string
	if recordOf(claim).Recreate != nil && claim.DeletionTimestamp == nil {
		left = append(left, "claim "+claim.Name+" is still being recreated")
	}
	if held := heldState(l.world, claim.Spec.VolumeName); held != nil {
		left = append(left, "volume "+claim.Spec.VolumeName+" of claim "+claim.Name+" is held")
	}
	return left
}

func (w *World) drivers(v *volume) driver { return w.storage.drivers[v.class] }

// isWanted reports whether a claim is that of a wanted pod.
func (l *law) isWanted(set *appsv1beta1.StatefulSet, claim *corev1.PersistentVolumeClaim) bool {
	template, pod := splitClaim(claim.Name)
	return slices.Contains(l.world.names(set), pod) && byName(set.Spec.VolumeClaimTemplates)[template] != nil
}

// isExcused reports whether what is left of a claim is not the operator's to remove: a
// user has deleted the claim, which told of it, or its pod is not wanted.
func (l *law) isExcused(set *appsv1beta1.StatefulSet, claim string) bool {
	template, pod := splitClaim(claim)
	return l.data.forgotten.Has(claim) || !slices.Contains(l.world.names(set), pod) || byName(set.Spec.VolumeClaimTemplates)[template] == nil
}

// refusesUndo reports whether a claim cannot have the volume back that a user asks for.
func (w *World) refusesUndo(claim *corev1.PersistentVolumeClaim) bool {
	wanted := claim.Annotations[appsv1beta1.UndoRecreateAnnotation]
	if entries := recordOf(claim).HeldVolumes; wanted == appsv1beta1.UndoRecreatePrevious && len(entries) > 0 {
		wanted = entries[0].Name
	}
	held := heldState(w, wanted)
	return held == nil || held.Claim != claim.Name || wanted == claim.Spec.VolumeName || w.isVolumeDeleted(wanted) || w.isVolumeDeleted(claim.Spec.VolumeName)
}

// hasFailed reports whether a claim of a template could not be recreated: the others
// are not tried then.
func (w *World) hasFailed(template *corev1.PersistentVolumeClaim) bool {
	for _, claim := range all[*corev1.PersistentVolumeClaim](w.server) {
		if name, _ := splitClaim(claim.Name); name == template.Name && recordOf(claim).RecreateFailure != nil {
			return true
		}
	}
	return false
}
