// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The model of finalizers on volumes. The operator is away.

func (c claimed) deleteVolume(name string) {
	c.Expect(c.world.server.delete(objectKey{"PersistentVolume", name}, nil)).To(Succeed())
}

// reclaimAs gives a volume a reclaim policy.
func (c claimed) reclaimAs(volume string, policy corev1.PersistentVolumeReclaimPolicy) {
	mutate(c.world.server, volume, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
	c.wait(1)
}

// patchVolume patches the metadata of a volume, as others do.
func (c claimed) patchVolume(name, metadata string) error {
	_, err := c.world.server.patch(patchRequest{
		key: objectKey{"PersistentVolume", name}, kind: types.MergePatchType, body: []byte(`{"metadata":` + metadata + `}`),
	})
	return err
}

func TestVolumesHaveTheFinalizersOfTheirPolicy(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	name := c.volume(theClaim).name
	c.Expect(c.pv(name).Finalizers).To(ConsistOf(volumeProtection, provisionerFinalizer))
	c.reclaimAs(name, corev1.PersistentVolumeReclaimRetain)
	c.Expect(c.pv(name).Finalizers).To(ConsistOf(volumeProtection))
	c.reclaimAs(name, corev1.PersistentVolumeReclaimDelete)
	c.Expect(c.pv(name).Finalizers).To(ConsistOf(volumeProtection, provisionerFinalizer))

	retained := newClaimed(t, "retained", nil)
	retained.Expect(retained.pv(retained.volume(theClaim).name).Finalizers).To(ConsistOf(volumeProtection))
}

// A volume that a user deletes is there until its claim is gone; then its policy says
// what becomes of its disk.
func TestVolumesThatAreDeletedWhileTheyAreBound(t *testing.T) {
	for _, test := range []struct {
		policy corev1.PersistentVolumeReclaimPolicy
		// survives: the disk does.
		survives bool
	}{{corev1.PersistentVolumeReclaimDelete, false}, {corev1.PersistentVolumeReclaimRetain, true}} {
		t.Run(string(test.policy), func(t *testing.T) {
			c := newClaimed(t, "standard", nil)
			c.wait(30)
			v := c.volume(theClaim)
			c.reclaimAs(v.name, test.policy)
			c.deleteVolume(v.name)
			c.wait(60)
			c.Expect(c.pv(v.name).DeletionTimestamp).NotTo(BeNil())
			c.Expect(c.phase(theClaim)).To(Equal(corev1.ClaimBound))
			c.Expect(conditionIs(c.pod(), corev1.PodReady, corev1.ConditionTrue)).To(BeTrue())
			c.deletePod()
			c.deleteClaim(theClaim)
			c.wait(10)
			c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
			c.Expect(c.world.storage.disks).To(BeEmpty())
			if test.survives {
				c.Expect(c.world.storage.outside).To(HaveKeyWithValue(v.handle, v))
			} else {
				c.Expect(c.world.storage.outside).To(BeEmpty())
			}
		})
	}
}

// The provisioner gives a volume the name of its claim, and makes none while there is one of
// that name. So where a user deletes one before its claim is bound, the claim waits for
// ever: only when it is gone, too, the disk is destroyed, and the volume goes.
func TestVolumesThatAreDeletedBeforeTheyAreBound(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.world.calm = true
	c.claimOn("mine", "standard", "1Gi", nil)
	mine, _ := get[*corev1.PersistentVolumeClaim](c.world.server, "mine")
	name := "pv-" + string(mine.UID)
	c.wait(1)
	c.Expect(c.phase("mine")).To(Equal(corev1.ClaimPending))
	c.deleteVolume(name)
	c.wait(60)
	c.Expect(c.phase("mine")).To(Equal(corev1.ClaimPending))
	c.Expect(c.pv(name).Finalizers).To(ConsistOf(provisionerFinalizer))
	c.Expect(c.world.storage.isBusy()).To(BeFalse(), "it never ends by itself")

	c.deleteClaim("mine")
	c.wait(10)
	c.Expect(c.world.storage.volumeNamed(name)).To(BeNil())
	c.Expect(c.world.storage.disks).NotTo(HaveKey(name))
	c.claimOn("mine", "standard", "1Gi", nil)
	c.wait(5)
	c.Expect(c.phase("mine")).To(Equal(corev1.ClaimBound))
}

// A disk whose volume is gone is found by a new volume that names it, with all that was
// written.
func TestDisksAreFoundByTheirHandle(t *testing.T) {
	c := newClaimed(t, "retained", nil)
	c.wait(30)
	v, pod := c.volume(theClaim), c.pod()
	c.deletePod()
	c.deleteClaim(theClaim)
	before := c.pv(v.name)
	c.wait(5)
	c.deleteVolume(v.name)
	c.wait(5)
	c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
	written := v.written
	c.Expect(written).NotTo(BeEmpty())

	again := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: *before.Spec.DeepCopy()}
	again.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: theClaim}
	c.Expect(c.world.server.create(again)).To(Succeed())
	c.claimOn(theClaim, "retained", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "again" })
	c.makePod(pod)
	c.wait(60)
	c.Expect(c.phase(theClaim)).To(Equal(corev1.ClaimBound))
	c.Expect(c.volume(theClaim)).To(Equal(v))
	c.Expect(v.written[:len(written)]).To(Equal(written))
	c.Expect(c.pv("again").Finalizers).To(ConsistOf(volumeProtection))
}

// The provisioner destroys the disk of a released volume, whoever holds the object.
func TestFinalizersOfOthersKeepTheVolume(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	v := c.volume(theClaim)
	c.world.storage.keep(v.name, time.Minute)
	c.wait(5)
	c.Expect(c.pv(v.name).Finalizers).To(ConsistOf(volumeProtection, provisionerFinalizer, keeperFinalizer))
	c.deletePod()
	c.world.storage.keep(v.name, time.Minute)
	c.deleteClaim(theClaim)
	c.wait(10)
	c.Expect(c.pv(v.name).DeletionTimestamp).NotTo(BeNil())
	c.Expect(c.pv(v.name).Finalizers).To(ConsistOf(keeperFinalizer))
	c.Expect(c.world.storage.disks).To(BeEmpty())
	c.Expect(c.world.storage.isBusy()).To(BeTrue())
	c.wait(60)
	c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
	c.Expect(c.world.storage.isBusy()).To(BeFalse())
}

// A volume that is deleted takes no more finalizers, and goes with its last one. One that
// was set to Delete too late leaves its disk behind.
func TestFinalizersOfVolumesThatAreDeleted(t *testing.T) {
	c := newClaimed(t, "retained", nil)
	v := c.volume(theClaim)
	c.Expect(c.patchVolume(v.name, `{"finalizers":["`+volumeProtection+`","`+keeperFinalizer+`"]}`)).To(Succeed())
	c.deleteVolume(v.name)
	c.Expect(c.patchVolume(v.name, `{"labels":{"a":"b"}}`)).To(Succeed())
	err := c.patchVolume(v.name, `{"finalizers":["`+volumeProtection+`","`+keeperFinalizer+`","one.more/there"]}`)
	c.Expect(apierrors.IsInvalid(err)).To(BeTrue())
	c.Expect(err).To(MatchError(ContainSubstring("no new finalizers can be added if the object is being deleted")))

	c.deletePod()
	c.deleteClaim(theClaim)
	c.reclaimAs(v.name, corev1.PersistentVolumeReclaimDelete)
	c.wait(30)
	c.Expect(c.pv(v.name).Finalizers).To(ConsistOf(keeperFinalizer))
	c.Expect(c.patchVolume(v.name, `{"finalizers":null}`)).To(Succeed())
	c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
	c.Expect(c.world.storage.outside).To(HaveKeyWithValue(v.handle, v))
}
