// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What people do to volumes and snapshots by hand.

var storageHandDisturbances = []disturbance{
	{"volume made by hand", (*World).makeAnyVolume, 2},
	{"volume deleted by hand", (*World).deleteAnyVolume, 3},
	{"snapshot by hand", (*World).snapshotByHand, 2},
	{"snapshot deleted", (*World).deleteSnapshot, 2},
	{"snapshot made just before", func(w *World) { w.goAhead("VolumeSnapshot", pick(w.choices, makings)) }, 2},
}

// makeAnyVolume lets a user make a volume, also for a claim that is about to be made.
// A claim that is recreated may get it in place of its data: the status says so, and the
// user decides, see TestNamesTheVolumeThatIsNotRestored.
func (w *World) makeAnyVolume() {
	if claim := pick(w.choices, []string{"", "data-" + w.nextPodName()}); !w.settings.volumes.recreates {
		w.makeVolumeByHand(claim)
	}
}

// makeVolumeByHand lets a user make a volume: for a claim, or for any.
func (w *World) makeVolumeByHand(claim string) {
	s, class := w.storage, w.storage.drivers[w.claims.class]
	v := &volume{name: fmt.Sprintf("pv-mine-%d", w.server.uids), handle: fmt.Sprintf("handle-mine-%d", w.server.uids), claim: claim, class: w.claims.class, size: resource.MustParse(pick(w.choices, claimSizes[:3]))}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.name, Finalizers: []string{volumeProtection}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: v.size},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem), StorageClassName: v.class,
			PersistentVolumeReclaimPolicy: pick(w.choices, []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete}),
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner(class), VolumeHandle: v.handle}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim}
	}
	w.say("user: makes volume %s of class %s for claim %q", v.name, v.class, claim)
	s.disks[v.name] = v
	if err := w.server.create(pv); err != nil {
		w.violate("make volume by hand: %w", err)
	}
	w.hands.made[pv.UID] = bare
}

// provisioner returns the name of the driver of a class.
func provisioner(d driver) string {
	if d.foreign {
		return foreignDriver
	}
	return driverName
}

// deleteAnyVolume lets a user delete a volume. Where claims are recreated, see
// keeperDisturbances. A volume that is about to be bound stays: its claim would wait for
// ever, whatever the operator does, see TestVolumesThatAreDeletedBeforeTheyAreBound.
func (w *World) deleteAnyVolume() {
	known := all[*corev1.PersistentVolume](w.server)
	maps.DeleteFunc(known, func(_ string, pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumePending })
	if len(known) > 0 && !w.settings.volumes.recreates {
		w.deleteVolumeNamed(pick(w.choices, slices.Sorted(maps.Keys(known))))
	}
}

// givenUp is told of a volume that is gone because a user deleted it: the law no
// longer expects what was written in it, and is nowhere else.
func (d *dataLaw) givenUp(v *volume) {
	isLost := func(write int) bool { return slices.Contains(v.written, write) && !d.world.storage.holds(write) }
	d.expected[v.claim] = slices.DeleteFunc(slices.Clone(d.expected[v.claim]), isLost)
	d.discarded[v.claim] = slices.DeleteFunc(slices.Clone(d.discarded[v.claim]), isLost)
}
