// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Who keeps PersistentVolumes that are deleted, and what becomes of their disks. Each
// puts its own finalizer on a volume and takes it off; those of others stay.
//
// Sources: pkg/controller/volume/pvprotection of Kubernetes 1.34, and controller.go of
// sig-storage-lib-external-provisioner with HonorPVReclaimPolicy.

const (
	volumeProtection     = "kubernetes.io/pv-protection"
	provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
	// keeperFinalizer is that of another controller, such as one that takes a backup.
	keeperFinalizer = "example.com/backup"
)

// finalizersAtCreation are those of a volume that the provisioner makes.
func finalizersAtCreation(policy corev1.PersistentVolumeReclaimPolicy) []string {
	if policy == corev1.PersistentVolumeReclaimDelete {
		return []string{provisionerFinalizer, volumeProtection}
	}
	return []string{volumeProtection}
}

// guard puts the finalizers of Kubernetes and of the provisioner on a volume, and takes
// them off: a bound volume stays, and so does one whose disk is still to be destroyed.
func (s *storage) guard(pv *corev1.PersistentVolume) {
	isDeleted, isBound := pv.DeletionTimestamp != nil, pv.Status.Phase == corev1.VolumeBound
	isReclaimed := pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	guarded := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: slices.Clone(pv.Finalizers)}}
	switch {
	case !isDeleted:
		controllerutil.AddFinalizer(guarded, volumeProtection)
	case !isBound:
		controllerutil.RemoveFinalizer(guarded, volumeProtection)
	}
	switch {
	case !isReclaimed:
		controllerutil.RemoveFinalizer(guarded, provisionerFinalizer)
	case !isDeleted && isBound:
		controllerutil.AddFinalizer(guarded, provisionerFinalizer)
	}
	if !slices.Equal(guarded.Finalizers, pv.Finalizers) {
		mutate(s.world.server, pv.Name, func(pv *corev1.PersistentVolume) { pv.Finalizers = guarded.Finalizers })
	}
}

// reclaim lets the provisioner destroy the disk of a released volume with policy Delete,
// when no node has it. Of a volume that is deleted, its finalizer tells that it has not
// done so yet.
func (s *storage) reclaim(pv *corev1.PersistentVolume, v *volume) {
	isDue := pv.Status.Phase == corev1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		(pv.DeletionTimestamp == nil || slices.Contains(pv.Finalizers, provisionerFinalizer))
	switch {
	case !isDue:
		v.deleteAt = time.Time{}
	case v.deleteAt.IsZero():
		v.deleteAt = s.soon()
	case v.node == "" && !s.now().Before(v.deleteAt):
		s.destroy(v)
	}
}

// destroy destroys a disk and all that is in it, and deletes its volume.
func (s *storage) destroy(v *volume) {
	s.say("the disk of volume %s is destroyed, with %d writes", v.name, len(v.written))
	delete(s.disks, v.name)
	maps.DeleteFunc(s.volumes, func(_ types.UID, other *volume) bool { return other == v })
	_ = s.world.server.delete(objectKey{"PersistentVolume", v.name}, nil) // it is there: it was just seen
	mutate(s.world.server, v.name, func(pv *corev1.PersistentVolume) { controllerutil.RemoveFinalizer(pv, provisionerFinalizer) })
	if s.world.law.data.dropped.Has(v.name) {
		s.world.law.data.givenUp(v)
	}
	s.world.law.data.destroyed(v.claim, v.written)
}

// left is told of a volume that the server has no more. Its disk, if the provisioner
// has not destroyed it, stays, and no object leads to it.
func (s *storage) left(pv *corev1.PersistentVolume) {
	s.say("volume %s is gone", pv.Name)
	s.world.law.data.left(pv)
	if v := s.disks[pv.Name]; v != nil {
		delete(s.disks, pv.Name)
		s.outside[v.handle] = v
	}
}

// adopt lets a volume that a user has made have the disk that it names, when no node
// has that.
func (s *storage) adopt(pv *corev1.PersistentVolume) {
	v := s.outside[pv.Spec.CSI.VolumeHandle]
	if s.disks[pv.Name] != nil || v == nil || v.node != "" {
		return
	}
	s.say("volume %s has the disk %s", pv.Name, v.handle)
	delete(s.outside, v.handle)
	v.name = pv.Name
	s.disks[pv.Name] = v
}

// keep lets another controller hold a volume for a while. A finalizer cannot be put on one
// that is being deleted.
func (s *storage) keep(volume string, period time.Duration) {
	s.say("another controller holds volume %s for %s", volume, period)
	s.keepers[volume] = s.now().Add(period)
	mutate(s.world.server, volume, func(pv *corev1.PersistentVolume) {
		if pv.DeletionTimestamp == nil {
			controllerutil.AddFinalizer(pv, keeperFinalizer)
		}
	})
}

// stepKeepers releases the volumes that other controllers have held until now.
func (s *storage) stepKeepers() {
	for _, name := range slices.Sorted(maps.Keys(s.keepers)) {
		if s.now().Before(s.keepers[name]) {
			continue
		}
		s.say("no other controller holds volume %s any more", name)
		delete(s.keepers, name)
		mutate(s.world.server, name, func(pv *corev1.PersistentVolume) { controllerutil.RemoveFinalizer(pv, keeperFinalizer) })
	}
}

// keeperDisturbances may happen where others have a hand in volumes.
var keeperDisturbances = []disturbance{
	{"volume held by others", (*World).keepVolume, 4},
	{"volume deleted", (*World).deleteVolume, 2},
}

func (w *World) keepVolume() {
	if name := w.anyVolume(); name != "" {
		w.storage.keep(name, w.choices.seconds(200))
	}
}

// deleteVolume lets a user delete a volume that has a claim, or had one.
func (w *World) deleteVolume() {
	if name := w.anyVolume(); name != "" {
		w.deleteVolumeNamed(name)
	}
}

func (w *World) deleteVolumeNamed(name string) {
	w.say("user: deletes volume %s", name)
	w.law.data.dropped.Insert(name)
	_ = w.server.delete(objectKey{"PersistentVolume", name}, nil) // it is there: it was just seen
}

// knownVolumes returns the names of the volumes that are bound, or were.
func (w *World) knownVolumes() []string {
	pvs := all[*corev1.PersistentVolume](w.server)
	maps.DeleteFunc(pvs, func(_ string, pv *corev1.PersistentVolume) bool {
		return pv.Status.Phase != corev1.VolumeBound && pv.Status.Phase != corev1.VolumeReleased
	})
	return slices.Sorted(maps.Keys(pvs))
}

// anyVolume returns one of them; empty if there is none.
func (w *World) anyVolume() string {
	if known := w.knownVolumes(); len(known) > 0 {
		return pick(w.choices, known)
	}
	return ""
}
