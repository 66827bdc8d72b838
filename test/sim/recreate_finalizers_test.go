// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// allVolumes does something about each volume.
func (w *World) allVolumes(do func(name string)) {
	for _, name := range w.knownVolumes() {
		do(name)
	}
}

// keepAllVolumes lets another controller hold all volumes for a while.
func keepAllVolumes(w *World) {
	w.allVolumes(func(name string) { w.storage.keep(name, 90*time.Second) })
}

func deleteAllVolumes(w *World) { w.allVolumes(w.deleteVolumeNamed) }

// Others hold the volumes of claims that are being recreated, or delete them: at any
// time, no byte is lost, and the manager takes off no hold of others.
func TestRecreationOfVolumesInOtherHands(t *testing.T) {
	t.Parallel()
	for _, o := range []claimOvertaking{
		{"held by others", once(keepAllVolumes)},
		{"deleted", once(deleteAllVolumes)},
		{"held by others, and deleted", once(func(w *World) {
			keepAllVolumes(w)
			deleteAllVolumes(w)
		})},
	} {
		for _, second := range []int{0, 6, 13, 16, 22, 30} {
			t.Run(fmt.Sprintf("%s/%d", o.name, second), func(t *testing.T) {
				t.Parallel()
				if what := overtakeRecreation(NewWithT(t), o, true, second); what != "" {
					t.Error(what)
				}
			})
		}
	}
}

// A volume that a user deletes while its claim is missing tells what that is made from
// until it is there.
func TestVolumesDeletedWhileTheirClaimIsMissing(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	recreatingFew(1, nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	claimsOfClass("fast")(w)
	isMissing := func() bool {
		claim, there := get[*corev1.PersistentVolumeClaim](w.server, theClaim)
		return !there || claim.Status.Phase != corev1.ClaimBound
	}
	for !isMissing() {
		w.step()
	}
	deleteAllVolumes(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(w.claimsInWords()).To(Equal("1 fast 1Gi"))
}

// The snapshot of a claim goes in its time also if a user has deleted the volume that
// it was taken of.
func TestSnapshotsOfVolumesThatAreDeleted(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	recreatingFew(1, nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	claimsOfClass("fast")(w)
	for len(all[*corev1.PersistentVolume](w.server)) < 2 {
		w.step()
	}
	deleteAllVolumes(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(all[*snapshotv1.VolumeSnapshot](w.server)).To(BeEmpty())
}

// A manager dies as it asks for a first snapshot, the user goes back, and the request
// arrives when nothing asks for the snapshot any more.
func TestSnapshotsThatNothingAsksForAnyMore(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	recreatingFew(1, nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.fate = func(written write) fate {
		if !written.isAbout("create VolumeSnapshot") {
			return succeeds
		}
		w.fate = nil
		return strays
	}
	claimsOfClass("fast")(w)
	for len(w.returns) == 0 {
		w.step()
	}
	w.returns[0].at = w.clock.Now().Add(time.Minute)
	claimsOfClass("standard")(w)
	w.settle()
	w.law.checkRest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// A class of snapshots may keep what the driver stores of a snapshot when the snapshot is
// deleted. What the operator deletes leaves nothing behind: the first snapshot never, the
// other one if the user says so.
func TestSnapshotsOfAClassThatRetains(t *testing.T) {
	for keep, left := range map[appsv1beta1.RecreateRetentionType]int{appsv1beta1.DeleteRecreateRetention: 0, appsv1beta1.RetainRecreateRetention: 1} {
		g := NewWithT(t)
		s := reference()
		recreatingFew(1, func(s *settings) {
			s.volumes.strategy.Recreate.VolumeSnapshotClassName, s.volumes.strategy.Recreate.Snapshot = "retains", keep
		})(&s)
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		claimsOfClass("fast")(w)
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		g.Expect(w.claimsInWords()).To(Equal("1 fast 1Gi"))
		g.Expect(all[*snapshotv1.VolumeSnapshotContent](w.server)).To(HaveLen(left), "snapshot: %s", keep)
	}
}

// A set that is deleted while a claim is recreated leaves a held volume, which an
// administrator can delete.
func TestVolumesOfDeletedSetsCanBeDeleted(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	recreatingFew(1, nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	claimsOfClass("fast")(w)
	isMissing := func() bool {
		claim, there := get[*corev1.PersistentVolumeClaim](w.server, theClaim)
		return !there || claim.Status.Phase != corev1.ClaimBound
	}
	for !isMissing() {
		w.step()
	}
	protected := func() []string {
		var names []string
		for name, pv := range all[*corev1.PersistentVolume](w.server) {
			if slices.Contains(pv.Finalizers, appsv1beta1.HeldVolumeFinalizer) {
				names = append(names, name)
			}
		}
		return names
	}
	g.Expect(protected()).To(HaveLen(1))
	w.server.remove(w.setKey())
	for range 20 {
		w.step()
	}
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(protected()).To(BeEmpty(), w.story.String())
	g.Expect(all[*corev1.PersistentVolume](w.server)).NotTo(BeEmpty(), "the data stays")
}
