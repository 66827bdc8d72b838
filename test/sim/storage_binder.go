// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What Kubernetes and the provisioner of the driver do about claims and volumes that
// are to be bound, or that are bound no more.

const (
	bindCompleted     = "pv.kubernetes.io/bind-completed"
	boundByController = "pv.kubernetes.io/bound-by-controller"
	selectedNode      = "volume.kubernetes.io/selected-node"
)

// stepBinder is one second of the controller of volumes.
func (s *storage) stepBinder() {
	s.stepKeepers()
	pvs := all[*corev1.PersistentVolume](s.world.server)
	for _, name := range slices.Sorted(maps.Keys(pvs)) {
		s.syncVolume(pvs[name])
	}
}

// syncVolume gives a volume its phase, and destroys its disk if nothing wants it any more.
func (s *storage) syncVolume(pv *corev1.PersistentVolume) {
	s.adopt(pv)
	ref, phase := pv.Spec.ClaimRef, corev1.VolumeReleased
	switch claim := s.claimOfVolume(pv); {
	case ref == nil || ref.UID == "":
		phase = corev1.VolumeAvailable
	case claim != nil && claim.Spec.VolumeName == "":
		phase = pv.Status.Phase // it is about to be bound
	case claim != nil && claim.Spec.VolumeName == pv.Name:
		phase = corev1.VolumeBound
	}
	if phase != pv.Status.Phase { // most of the time there is nothing to do, and a comparison of volumes is long
		mutate(s.world.server, pv.Name, func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase })
	}
	if v := s.disks[pv.Name]; v != nil {
		s.reclaim(s.volumeNamed(pv.Name), v)
	}
	if pv := s.volumeNamed(pv.Name); pv != nil {
		s.guard(pv)
	}
}

// claimOfVolume returns the claim that a volume is for; nil if it is no more.
func (s *storage) claimOfVolume(pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if pv.Spec.ClaimRef == nil {
		return nil
	}
	claim, there := get[*corev1.PersistentVolumeClaim](s.world.server, pv.Spec.ClaimRef.Name)
	if !there || claim.UID != pv.Spec.ClaimRef.UID {
		return nil
	}
	return claim
}

// isFor reports whether a volume is for a claim, or may be.
func isFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}

// provision gives a claim its volume, if there is one for it or if one can be made.
func (s *storage) provision(claim *corev1.PersistentVolumeClaim) {
	_, completed := claim.Annotations[bindCompleted]
	pv := s.volumeFor(claim)
	switch {
	case claim.DeletionTimestamp != nil:
	case completed && (pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID):
		s.say("claim %s is lost: it says that it was bound", claim.Name)
		s.write(claim.Name, func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimLost })
	case pv != nil:
		s.bind(claim, pv)
	case claim.Spec.VolumeName != "": // that volume is not there, or is another claim's
	case s.canMake(claim) && (s.world.calm || !s.world.choices.oneIn(3)):
		s.makeVolume(claim, s.sourceOf(claim))
	}
}

// volumeFor returns the volume that a claim is to have; nil if none is there, with its
// disk.
func (s *storage) volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pvs := all[*corev1.PersistentVolume](s.world.server)
	maps.DeleteFunc(pvs, func(name string, _ *corev1.PersistentVolume) bool { return s.disks[name] == nil })
	if named := pvs[claim.Spec.VolumeName]; named != nil {
		isLate := s.now().Sub(claim.CreationTimestamp.Time) > 2*time.Second && s.now().Unix()%bindsEvery != 0
		if isFor(named, claim) && !isLate || named.Spec.ClaimRef == nil && named.Spec.StorageClassName == *claim.Spec.StorageClassName {
			return named
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(pvs)) {
		if claim.Spec.VolumeName == "" && isFor(pvs[name], claim) && fits(pvs[name], claim) {
			return pvs[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pvs)) {
		pv := pvs[name]
		if claim.Spec.VolumeName == "" && pv.Spec.ClaimRef == nil && fits(pv, claim) && pv.Spec.StorageClassName == *claim.Spec.StorageClassName {
			return pv
		}
	}
	return nil
}

// bindsEvery is how often a claim that waits for a volume which it names is looked at,
// in seconds.
const bindsEvery = 15

// fits reports whether a volume can be taken for a claim that does not name it. Where
// it is kept for the claim, its class does not matter, nor what the claim is to hold.
func fits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	has := pv.Spec.Capacity[corev1.ResourceStorage]
	return compare(has, requestOf(claim)) >= 0 && *pv.Spec.VolumeMode == *claim.Spec.VolumeMode && pv.DeletionTimestamp == nil
}

// bind binds a claim to a volume.
func (s *storage) bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	mutate(s.world.server, pv.Name, func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim.Name, UID: claim.UID}
		pv.Status.Phase = corev1.VolumeBound
	})
	v := s.disks[pv.Name]
	s.volumes[claim.UID] = v
	v.claim, v.growth, v.change, v.nodal = claim.Name, growth{}, modification{}, nodal{}
	s.write(claim.Name, func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
		if claim.Spec.VolumeName == "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, boundByController, "yes")
		}
		claim.Spec.VolumeName = pv.Name
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.AccessModes = pv.Spec.AccessModes
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: v.size}
		if v.attributes != "" {
			claim.Status.CurrentVolumeAttributesClassName = &v.attributes
		}
	})
	v.see(s.claimOf(v))
	s.world.law.data.bound(s.claimOf(v), v)
}

// canMake reports whether the provisioner can make a volume for a claim. It makes none
// while there is one of the same name, also one that is being deleted.
func (s *storage) canMake(claim *corev1.PersistentVolumeClaim) bool {
	class, exists := get[*storagev1.StorageClass](s.world.server, *claim.Spec.StorageClassName)
	d := s.driverOf(claim)
	_, selected := claim.Annotations[selectedNode]
	switch {
	case !exists, d.waits && !selected, s.volumeNamed(volumeOf(claim)) != nil:
		return false
	case claim.Spec.DataSource == nil:
		return true
	case d.noRestore:
		return false
	}
	from, snapshot := s.sourceOf(claim), s.snapshotNamed(claim.Spec.DataSource.Name)
	if from == nil || snapshot.DeletionTimestamp != nil || !ptr.Deref(snapshot.Status.ReadyToUse, false) {
		return false
	}
	content, there := get[*snapshotv1.VolumeSnapshotContent](s.world.server, *snapshot.Status.BoundVolumeSnapshotContentName)
	restore := snapshot.Status.RestoreSize
	return there && content.Spec.Driver == class.Provisioner && from.mode == *claim.Spec.VolumeMode &&
		(restore == nil || compare(requestOf(claim), *restore) >= 0) && compare(requestOf(claim), from.size) >= 0
}

// sourceOf returns what a claim is to hold from its beginning; nil for nothing.
func (s *storage) sourceOf(claim *corev1.PersistentVolumeClaim) *image {
	if claim.Spec.DataSource == nil {
		return nil
	}
	snapshot := s.snapshotNamed(claim.Spec.DataSource.Name)
	if snapshot == nil || snapshot.Status == nil {
		return nil
	}
	return s.images[ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")]
}

// protects reports whether something keeps a claim that is deleted.
func (s *storage) protects(claim *corev1.PersistentVolumeClaim) bool {
	return s.isScheduledFor(claim.Name) || slices.Contains(claim.Finalizers, sourceProtection)
}

// drop removes a claim that is deleted, and that nothing protects.
func (s *storage) drop(claim *corev1.PersistentVolumeClaim) {
	s.say("claim %s is gone", claim.Name)
	s.world.server.remove(objectKey{"PersistentVolumeClaim", claim.Name})
	s.world.law.data.gone(claim, s.volumes[claim.UID])
	delete(s.volumes, claim.UID)
}

// selectNode tells the provisioner that a pod of a claim is to run on a node.
func (s *storage) selectNode(claim *corev1.PersistentVolumeClaim, node string) {
	if !s.drivers[ptr.Deref(claim.Spec.StorageClassName, "")].waits {
		return
	}
	s.write(claim.Name, func(claim *corev1.PersistentVolumeClaim) {
		if _, selected := claim.Annotations[selectedNode]; !selected {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, node)
		}
	})
}

// isDeleting reports whether a volume or a claim is about to go.
func (s *storage) isDeleting() bool {
	if len(s.keepers) > 0 {
		return true
	}
	for _, v := range s.disks {
		if !v.deleteAt.IsZero() || !v.freeAt.IsZero() {
			return true
		}
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](s.world.server) {
		if claim.DeletionTimestamp != nil && !s.isScheduledFor(claim.Name) && !s.isBeingTaken(claim.Name) {
			return true
		}
	}
	return false
}
