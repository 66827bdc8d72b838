// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The model of snapshots and volumes. The operator is away.

// snapshot takes a snapshot of the claim, of a class; of none if it is empty.
func (c claimed) snapshot(name, class string) {
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(theClaim)}},
	}
	if class != "" {
		snapshot.Spec.VolumeSnapshotClassName = &class
	}
	c.Expect(c.world.server.create(snapshot)).To(Succeed())
}

func (c claimed) wait(seconds int) {
	for range seconds {
		c.world.step()
	}
	c.Expect(c.world.failure).NotTo(HaveOccurred(), c.world.story.String())
}

// usable waits until a snapshot can be used.
func (c claimed) usable(name string) *snapshotv1.VolumeSnapshot {
	for range 100 {
		if snapshot := c.world.storage.snapshotNamed(name); isUsable(snapshot) {
			return snapshot
		}
		c.world.step()
	}
	c.Expect(c.world.storage.snapshotNamed(name)).To(BeNil(), c.world.story.String())
	return nil
}

// volume returns the volume of a claim; nil for none.
func (c claimed) volume(claim string) *volume {
	found, ok := get[*corev1.PersistentVolumeClaim](c.world.server, claim)
	c.Expect(ok).To(BeTrue())
	return c.world.storage.volumes[found.UID]
}

func (c claimed) phase(claim string) corev1.PersistentVolumeClaimPhase {
	found, ok := get[*corev1.PersistentVolumeClaim](c.world.server, claim)
	c.Expect(ok).To(BeTrue())
	return found.Status.Phase
}

// claimOn makes a claim of a class, changed.
func (c claimed) claimOn(name, class, size string, change func(*corev1.PersistentVolumeClaim)) {
	claim := claimTemplate(name, class, size)
	if change != nil {
		change(&claim)
	}
	c.Expect(c.world.server.create(&claim)).To(Succeed())
}

// fromSnapshot makes a claim one that is to hold what a snapshot holds.
func fromSnapshot(name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: name}
	}
}

func (c claimed) deleteClaim(name string) {
	c.Expect(c.world.server.delete(objectKey{"PersistentVolumeClaim", name}, nil)).To(Succeed())
}

func (c claimed) retain(volume string) {
	mutate(c.world.server, volume, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
}

// unbind lets a volume be bound to another claim of the same name.
func (c claimed) unbind(volume string) {
	mutate(c.world.server, volume, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.ResourceVersion = "", "" })
}

func (c claimed) pv(name string) *corev1.PersistentVolume {
	pv, ok := get[*corev1.PersistentVolume](c.world.server, name)
	c.Expect(ok).To(BeTrue())
	return pv
}

// What is in the memory of the node is in no snapshot; when the volume is taken from
// the node, it is.
func TestSnapshotsHoldWhatHasReachedTheVolume(t *testing.T) {
	for _, attaches := range []bool{false, true} {
		c := newClaimed(t, "standard", func(v *volumes) { v.attaches = attaches })
		c.wait(30)
		c.snapshot("early", "")
		early := c.usable("early")
		c.Expect(early.Status.RestoreSize.String()).To(Equal("1Gi"))
		c.Expect(*early.Spec.VolumeSnapshotClassName).To(Equal("standard"))
		v := c.volume(theClaim)
		written := func(name string) bytes {
			return c.world.storage.images[*c.world.storage.snapshotNamed(name).Status.BoundVolumeSnapshotContentName].written
		}
		c.Expect(len(written("early"))).To(And(BeNumerically(">", 3), BeNumerically("<", len(v.written))))
		c.Expect(all[*storagev1.VolumeAttachment](c.world.server)).To(HaveLen(map[bool]int{true: 1}[attaches]))
		c.Expect(c.world.server.delete(objectKey{"Pod", setName + "-0"}, nil)).To(Succeed())
		for len(all[*corev1.Pod](c.world.server)) > 0 {
			c.world.step()
		}
		c.Expect(all[*storagev1.VolumeAttachment](c.world.server)).To(HaveLen(map[bool]int{true: 1}[attaches]), "it lags behind")
		c.Expect(v.safe).To(BeNumerically("<", len(v.written)))
		c.wait(10)
		c.Expect(all[*storagev1.VolumeAttachment](c.world.server)).To(BeEmpty())
		c.snapshot("late", "")
		c.usable("late")
		c.Expect(written("late")).To(Equal(v.written))
		c.claimOn("copy", "fast", "2Gi", fromSnapshot("late"))
		c.wait(5)
		c.Expect(c.volume("copy").written).To(Equal(v.written))
	}
}

func TestSnapshotsOfAllKinds(t *testing.T) {
	for _, test := range []struct {
		class  string
		within int
		says   string
		before func(*World)
	}{
		{class: "standard", within: 10},
		{class: "slow", within: 60},
		{class: "flaky", within: 20},
		{class: "sizeless", within: 10},
		{class: "failing", says: "code = Internal"},
		{class: "hanging", says: "DeadlineExceeded"},
		{class: "never-ready"},
		{class: "foreign", says: "another driver"},
		{class: "none", says: "no such class"},
		{class: "", says: "no default one", before: func(w *World) { w.server.remove(objectKey{"VolumeSnapshotClass", "standard"}) }},
	} {
		t.Run(test.class, func(t *testing.T) {
			c := newClaimed(t, "standard", nil)
			if test.before != nil {
				test.before(c.world)
			}
			c.snapshot("taken", test.class)
			if test.within == 0 {
				c.wait(300)
				snapshot := c.world.storage.snapshotNamed("taken")
				c.Expect(isUsable(snapshot)).To(BeFalse())
				if test.says != "" {
					c.Expect(*snapshot.Status.Error.Message).To(ContainSubstring(test.says))
				}
				return
			}
			c.wait(test.within)
			snapshot := c.world.storage.snapshotNamed("taken")
			c.Expect(isUsable(snapshot)).To(BeTrue(), c.world.story.String())
			c.Expect(snapshot.Status.Error).To(BeNil())
			c.Expect(snapshot.Status.RestoreSize == nil).To(Equal(test.class == "sizeless"))
			// A claim that is to hold it keeps it, as long as it has no volume.
			c.claimOn("copy", "none", "1Gi", fromSnapshot("taken"))
			c.Expect(c.world.server.delete(objectKey{"VolumeSnapshot", "taken"}, nil)).To(Succeed())
			c.wait(20)
			c.Expect(c.world.storage.images).To(HaveLen(1))
			c.deleteClaim("copy")
			c.wait(5)
			c.Expect(all[*snapshotv1.VolumeSnapshot](c.world.server)).To(BeEmpty())
			c.Expect(all[*snapshotv1.VolumeSnapshotContent](c.world.server)).To(BeEmpty())
			c.Expect(c.world.storage.images).To(BeEmpty())
		})
	}
}

func TestWhatASnapshotHoldsCanOutliveIt(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.snapshot("taken", "retains")
	c.usable("taken")
	c.Expect(c.world.server.delete(objectKey{"VolumeSnapshot", "taken"}, nil)).To(Succeed())
	c.wait(5)
	c.Expect(all[*snapshotv1.VolumeSnapshot](c.world.server)).To(BeEmpty())
	c.Expect(all[*snapshotv1.VolumeSnapshotContent](c.world.server)).To(HaveLen(1))
}

// A claim that cannot be made from what it names is Pending for ever.
func TestClaimsFromSnapshots(t *testing.T) {
	for _, test := range []struct {
		name, class, size, from string
		change                  func(*corev1.PersistentVolumeClaim)
		phase                   corev1.PersistentVolumeClaimPhase
	}{
		{"as large", "standard", "1Gi", "taken", nil, corev1.ClaimBound},
		{"larger, of another class", "fast", "2Gi", "taken", nil, corev1.ClaimBound},
		{"too small", "fast", "900Mi", "taken", nil, corev1.ClaimPending},
		{"no such snapshot", "fast", "1Gi", "none", nil, corev1.ClaimPending},
		{"another driver", "foreign", "1Gi", "taken", nil, corev1.ClaimPending},
		{"another mode", "fast", "1Gi", "taken", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, corev1.ClaimPending},
		{"no such class", "none", "1Gi", "taken", nil, corev1.ClaimPending},
		{"a driver that restores nothing", "no-restore", "1Gi", "taken", nil, corev1.ClaimPending},
		{"no pod yet", "fast-wait", "1Gi", "taken", nil, corev1.ClaimPending},
		{"not ready", "fast", "1Gi", "late", nil, corev1.ClaimPending},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClaimed(t, "standard", nil)
			c.snapshot("taken", "")
			c.snapshot("late", "never-ready")
			c.usable("taken")
			c.claimOn("copy", test.class, test.size, func(claim *corev1.PersistentVolumeClaim) {
				fromSnapshot(test.from)(claim)
				if test.change != nil {
					test.change(claim)
				}
			})
			c.wait(300)
			c.Expect(c.phase("copy")).To(Equal(test.phase))
		})
	}
}

func TestReclaimPolicies(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	pod := c.pod()
	c.deletePod()
	c.deleteClaim(theClaim)
	c.wait(5)
	c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
	c.Expect(c.world.storage.disks).To(BeEmpty())

	c.claimOn(theClaim, "standard", "1Gi", nil)
	c.makePod(pod)
	c.wait(30)
	v := c.volume(theClaim)
	c.Expect(v.written).NotTo(BeEmpty())
	written := v.written
	c.deletePod()
	c.retain(v.name)
	c.deleteClaim(theClaim)
	c.wait(30)
	c.Expect(c.pv(v.name).Status.Phase).To(Equal(corev1.VolumeReleased))

	// A claim of the same name does not get the volume, as long as that names the one
	// before; and one that names it waits.
	c.claimOn(theClaim, "standard", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = v.name })
	c.wait(30)
	c.Expect(c.phase(theClaim)).To(Equal(corev1.ClaimPending))
	c.unbind(v.name)
	c.wait(bindsEvery)
	c.Expect(c.phase(theClaim)).To(Equal(corev1.ClaimBound))
	c.Expect(c.pv(v.name).Status.Phase).To(Equal(corev1.VolumeBound))
	c.Expect(c.volume(theClaim).written[:len(written)]).To(Equal(written))

	// Deleted only when nothing has it.
	mutate(c.world.server, v.name, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	c.wait(30)
	c.Expect(c.phase(theClaim)).To(Equal(corev1.ClaimBound))
	c.deleteClaim(theClaim)
	c.wait(5)
	c.Expect(all[*corev1.PersistentVolume](c.world.server)).To(BeEmpty())
}

func TestVolumesThatAreFree(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	v := c.volume(theClaim)
	c.deletePod()
	c.retain(v.name)
	c.deleteClaim(theClaim)
	c.wait(3)
	c.unbind(v.name)
	c.wait(3)
	c.Expect(c.pv(v.name).Status.Phase).To(Equal(corev1.VolumeAvailable))
	c.claimOn("other", "standard", "1Gi", nil)
	c.claimOn(theClaim, "fast", "1Gi", fromSnapshot("none"))
	c.wait(5)
	c.Expect(c.volume(theClaim)).To(Equal(v), "it is kept for the claim of this name, whatever that is to hold")
	c.Expect(c.volume("other")).NotTo(Equal(v))
}

// What a controller notes on a claim that is bound must not be on one that is new.
func TestClaimsThatSayThatTheyWereBound(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.claimOn("copy", "standard", "1Gi", func(claim *corev1.PersistentVolumeClaim) { claim.Annotations = c.claim().Annotations })
	c.wait(5)
	c.Expect(c.phase("copy")).To(Equal(corev1.ClaimLost))
}

func TestClaimsOfWhichASnapshotIsTakenAreProtected(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.deletePod()
	c.snapshot("taken", "slow")
	c.wait(5)
	c.deleteClaim(theClaim)
	c.wait(20)
	c.Expect(c.claim().DeletionTimestamp).NotTo(BeNil())
	c.usable("taken")
	c.wait(5)
	c.Expect(all[*corev1.PersistentVolumeClaim](c.world.server)).To(BeEmpty())
	c.Expect(c.world.storage.images).To(HaveLen(1))
}

// A snapshot without a class holds the claim, once another one has taken hold of it;
// and the snapshot controller does not release the claim when that is deleted.
func TestClaimsThatAreNotReleased(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.deletePod()
	c.snapshot("ready", "")
	c.usable("ready")
	c.snapshot("endless", "never-ready")
	c.snapshot("without", "none")
	c.wait(10)
	c.deleteClaim(theClaim)
	for _, name := range []string{"endless", "without"} {
		c.Expect(c.world.server.delete(objectKey{"VolumeSnapshot", name}, nil)).To(Succeed())
		c.wait(10)
		c.Expect(all[*corev1.PersistentVolumeClaim](c.world.server)).To(HaveLen(1))
	}
	c.wait(610)
	c.Expect(all[*corev1.PersistentVolumeClaim](c.world.server)).To(BeEmpty())
}

func TestDeadNodesLoseWhatIsInTheirMemory(t *testing.T) {
	c := newClaimed(t, "standard", func(v *volumes) { v.attaches = true })
	c.wait(30)
	v, pod := c.volume(theClaim), c.pod()
	before := len(v.written)
	c.world.node(pod).deadSince = c.world.clock.Now()
	c.wait(2)
	c.Expect(v.written).To(HaveLen(before - unsynced))
	c.world.server.finish(objectKey{"Pod", pod.Name})
	c.wait(200)
	c.Expect(all[*storagev1.VolumeAttachment](c.world.server)).To(HaveLen(1))
	c.wait(300)
	c.Expect(all[*storagev1.VolumeAttachment](c.world.server)).To(BeEmpty())
}

func TestQuotasOfStorage(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.Expect(c.world.server.create(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "storage"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourceRequestsStorage: resource.MustParse("2Gi"), snapshotCount: resource.MustParse("1"),
			"fast.storageclass.storage.k8s.io/persistentvolumeclaims": resource.MustParse("0"),
		}},
	})).To(Succeed())
	c.wait(2)
	quota, _ := get[*corev1.ResourceQuota](c.world.server, "storage")
	used := quota.Status.Used[corev1.ResourceRequestsStorage]
	c.Expect(used.String()).To(Equal("1Gi"))
	for _, refused := range []corev1.PersistentVolumeClaim{claimTemplate("one", "standard", "1500Mi"), claimTemplate("two", "fast", "1Gi")} {
		c.Expect(apierrors.IsForbidden(c.world.server.create(&refused))).To(BeTrue())
	}
	c.claimOn("three", "standard", "1Gi", nil)
	c.snapshot("taken", "")
	c.Expect(c.world.server.create(&snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "second"}})).To(MatchError(ContainSubstring("exceeded quota: storage")))
}

// A server without snapshots does not know them.
func TestServersWithoutSnapshots(t *testing.T) {
	c := newClaimed(t, "standard", nil)
	c.world.storage.unserved = true
	live := &liveReader{server: c.world.server}
	c.Expect(meta.IsNoMatchError(live.Get(t.Context(), client.ObjectKey{Name: "x"}, &snapshotv1.VolumeSnapshot{}))).To(BeTrue())
	c.Expect(meta.IsNoMatchError(live.List(t.Context(), &snapshotv1.VolumeSnapshotClassList{}))).To(BeTrue())
	c.Expect(live.List(t.Context(), &corev1.PersistentVolumeList{})).To(Succeed())
}
