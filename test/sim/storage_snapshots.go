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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The snapshot controller, and the snapshotter of the driver.

// snapshotter is what a class of snapshots promises, and what is behind it. The zero
// value takes snapshots that are ready at once.
type snapshotter struct {
	// driver is the name of another driver; retains: what a snapshot holds outlives it;
	// sizeless: the driver does not tell how large a volume from it must be.
	driver            string
	retains, sizeless bool
	// failures is how many calls fail, before one succeeds; forever for all.
	failures int
	// uploads is how long a snapshot that is taken is not ready; forever for ever.
	uploads int
	// hangs: no call is answered in time.
	hangs bool
}

// snapshotters are those of the classes of snapshots that there are, by name.
var snapshotters = map[string]snapshotter{
	"standard":    {},
	"slow":        {uploads: 40},
	"flaky":       {failures: 2},
	"failing":     {failures: forever},
	"hanging":     {hangs: true},
	"never-ready": {uploads: forever},
	"sizeless":    {sizeless: true},
	"retains":     {retains: true},
	"foreign":     {driver: foreignDriver},
}

const (
	foreignDriver        = "other.example.io"
	defaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class"
	sourceProtection     = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	snapshotProtection   = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	contentProtection    = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
)

// snapshotClass returns the object that a class of snapshots is.
func (s *storage) snapshotClass(name string) *snapshotv1.VolumeSnapshotClass {
	d := s.snapshotters[name]
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driverName, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}
	if name == defaultClass {
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, defaultSnapshotClass, "true")
	}
	if d.driver != "" {
		class.Driver = d.driver
	}
	if d.retains {
		class.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	}
	return class
}

// taking is what the programs remember of a snapshot that is to be taken.
type taking struct {
	queue
	// answer is when the driver answers a call, zero for no call; calls is how many it
	// has answered.
	answer time.Time
	calls  int
	// readyAt is when a snapshot that is taken is ready.
	readyAt time.Time
	// version is what was seen last of a snapshot that is ready.
	version string
}

func (s *storage) snapshotNamed(name string) *snapshotv1.VolumeSnapshot {
	snapshot, _ := get[*snapshotv1.VolumeSnapshot](s.world.server, name)
	return snapshot
}

// isUsable reports whether claims can be made from a snapshot.
func isUsable(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot != nil && snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

// isBeingTaken reports whether there is a snapshot of a claim that is not ready.
func (s *storage) isBeingTaken(claim string) bool {
	for _, snapshot := range all[*snapshotv1.VolumeSnapshot](s.world.server) {
		if ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "") == claim && !isUsable(snapshot) {
			return true
		}
	}
	return false
}

// releaseClaim releases a claim of which no snapshot is being taken any more. It is done when
// something happens to one of its snapshots, and at times.
func (s *storage) releaseClaim(snapshot *snapshotv1.VolumeSnapshot) {
	claim := ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "")
	if !slices.Contains(snapshot.Finalizers, snapshotProtection) || s.isBeingTaken(claim) {
		return
	}
	s.write(claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == sourceProtection })
	})
}

// stepSnapshots is one second of the controllers of snapshots.
func (s *storage) stepSnapshots() {
	snapshots := all[*snapshotv1.VolumeSnapshot](s.world.server)
	there := map[types.UID]bool{}
	for _, name := range slices.Sorted(maps.Keys(snapshots)) {
		snapshot := snapshots[name]
		there[snapshot.UID] = true
		if s.takings[snapshot.UID] == nil {
			s.takings[snapshot.UID] = &taking{queue: queue{due: s.soon()}}
		}
		t, now := s.takings[snapshot.UID], s.now()
		switch {
		case !t.answer.IsZero() && now.Before(t.answer): // the driver is at it
		case !t.answer.IsZero():
			s.answerSnapshot(t, snapshot)
		case snapshot.DeletionTimestamp != nil:
			s.dropSnapshot(snapshot)
		case isUsable(snapshot):
			if t.version != snapshot.ResourceVersion || now.Unix()%int64(resyncs.Seconds()) == 0 {
				t.version = snapshot.ResourceVersion
				s.releaseClaim(snapshot)
			}
		case !t.readyAt.IsZero() && !now.Before(t.readyAt):
			s.say("snapshot %s is ready", name)
			s.showSnapshot(snapshot, func(status *snapshotv1.VolumeSnapshotStatus) { status.ReadyToUse = ptr.To(true) })
		case t.readyAt.IsZero() && !t.due.IsZero() && !now.Before(t.due):
			t.due = time.Time{}
			s.take(t, snapshot)
		}
	}
	maps.DeleteFunc(s.takings, func(uid types.UID, _ *taking) bool { return !there[uid] })
}

func (s *storage) showSnapshot(snapshot *snapshotv1.VolumeSnapshot, change func(*snapshotv1.VolumeSnapshotStatus)) {
	mutate(s.world.server, snapshot.Name, func(snapshot *snapshotv1.VolumeSnapshot) {
		if snapshot.Status == nil {
			snapshot.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false)}
		}
		change(snapshot.Status)
	})
}

// fail shows why a snapshot is not taken, and tries again later, for ever.
func (s *storage) fail(t *taking, snapshot *snapshotv1.VolumeSnapshot, words string) {
	if t.failures == 0 {
		s.say("snapshot %s: %s", snapshot.Name, words)
	}
	before := s.world.server.version
	s.showSnapshot(snapshot, func(status *snapshotv1.VolumeSnapshotStatus) {
		now := metav1.NewTime(s.now())
		status.Error = &snapshotv1.VolumeSnapshotError{Time: &now, Message: &words}
	})
	s.writes += s.world.server.version - before
	t.retry(s.now())
}

// take begins to take a snapshot.
func (s *storage) take(t *taking, snapshot *snapshotv1.VolumeSnapshot) {
	claim, there := get[*corev1.PersistentVolumeClaim](s.world.server, ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""))
	class := s.classOfSnapshot(snapshot)
	switch {
	case class == nil:
		s.fail(t, snapshot, "Failed to create snapshot content: there is no such class of snapshots, or no default one")
		return
	case !there || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, sourceProtection):
		s.fail(t, snapshot, "Failed to create snapshot content: the claim is not there, not yet bound, or being deleted")
		return
	case class.Driver != s.provisionerOf(claim):
		s.fail(t, snapshot, "Failed to create snapshot content: the class of snapshots is of another driver")
		return
	}
	t.answer = s.now().Add(time.Second + s.world.choices.seconds(s.world.settings.volumes.delay))
	if s.snapshotters[class.Name].hangs {
		t.answer = s.now().Add(10 * time.Second)
	}
	name := contentName(snapshot)
	mutate(s.world.server, snapshot.Name, func(snapshot *snapshotv1.VolumeSnapshot) {
		if !slices.Contains(snapshot.Finalizers, snapshotProtection) {
			snapshot.Finalizers = append(snapshot.Finalizers, snapshotProtection)
		}
		snapshot.Spec.VolumeSnapshotClassName = &class.Name
	})
	s.showSnapshot(snapshot, func(status *snapshotv1.VolumeSnapshotStatus) { status.BoundVolumeSnapshotContentName = &name })
	s.write(claim.Name, func(claim *corev1.PersistentVolumeClaim) {
		if !slices.Contains(claim.Finalizers, sourceProtection) {
			claim.Finalizers = append(claim.Finalizers, sourceProtection)
		}
	})
	if _, exists := get[*snapshotv1.VolumeSnapshotContent](s.world.server, name); exists {
		return
	}
	_ = s.world.server.create(&snapshotv1.VolumeSnapshotContent{ // it is not there: it was just looked for
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{contentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", Namespace: namespace, Name: snapshot.Name, UID: snapshot.UID},
			DeletionPolicy:    class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &class.Name, SourceVolumeMode: claim.Spec.VolumeMode,
			Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &s.volumes[claim.UID].handle},
		},
	})
}

func contentName(snapshot *snapshotv1.VolumeSnapshot) string {
	return "snapcontent-" + string(snapshot.UID)
}

// provisionerOf returns the driver of a claim that is bound.
func (s *storage) provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	pv, there := get[*corev1.PersistentVolume](s.world.server, claim.Spec.VolumeName)
	if !there || pv.Spec.CSI == nil {
		return ""
	}
	return pv.Spec.CSI.Driver
}

// classOfSnapshot returns the class of a snapshot, or the default one; nil for none.
func (s *storage) classOfSnapshot(snapshot *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotClass {
	classes := all[*snapshotv1.VolumeSnapshotClass](s.world.server)
	if snapshot.Spec.VolumeSnapshotClassName != nil {
		return classes[*snapshot.Spec.VolumeSnapshotClassName]
	}
	var found *snapshotv1.VolumeSnapshotClass
	for _, class := range classes {
		if class.Annotations[defaultSnapshotClass] == "true" && class.Driver == driverName {
			if found != nil {
				return nil
			}
			found = class
		}
	}
	return found
}

// answerSnapshot takes what the driver says: what has reached the volume by now is in
// the snapshot.
func (s *storage) answerSnapshot(t *taking, snapshot *snapshotv1.VolumeSnapshot) {
	t.answer = time.Time{}
	t.calls++
	d := s.snapshotters[ptr.Deref(snapshot.Spec.VolumeSnapshotClassName, "")]
	content, _ := get[*snapshotv1.VolumeSnapshotContent](s.world.server, contentName(snapshot))
	v := s.diskAt(ptr.Deref(content.Spec.Source.VolumeHandle, ""))
	switch {
	case d.hangs:
		s.fail(t, snapshot, "Failed to check and update snapshot content: rpc error: code = DeadlineExceeded desc = context deadline exceeded")
		return
	case v == nil:
		s.fail(t, snapshot, "Failed to check and update snapshot content: rpc error: code = NotFound desc = no such volume")
		return
	case d.failures == forever || t.calls <= d.failures:
		s.fail(t, snapshot, "Failed to check and update snapshot content: rpc error: code = Internal desc = as simulated")
		return
	}
	s.images[contentName(snapshot)] = &image{claim: v.claim, written: v.synced(), size: v.size, mode: *content.Spec.SourceVolumeMode}
	s.say("snapshot %s is taken, with %d of %d writes", snapshot.Name, v.safe, len(v.written))
	now := metav1.NewTime(s.now())
	s.showSnapshot(snapshot, func(status *snapshotv1.VolumeSnapshotStatus) {
		status.CreationTime, status.Error = &now, nil
		status.ReadyToUse = ptr.To(d.uploads == 0)
		if !d.sizeless {
			status.RestoreSize = ptr.To(v.size.DeepCopy())
		}
	})
	if d.uploads >= 0 {
		t.readyAt = s.now().Add(time.Duration(d.uploads) * time.Second)
	} else {
		t.readyAt = s.now().Add(10000 * time.Hour)
	}
}

// diskAt returns the disk of a handle; nil if there is none.
func (s *storage) diskAt(handle string) *volume {
	for _, v := range s.disks {
		if v.handle == handle {
			return v
		}
	}
	return s.outside[handle]
}

// dropSnapshot removes a snapshot that is deleted, and what it holds.
func (s *storage) dropSnapshot(snapshot *snapshotv1.VolumeSnapshot) {
	if s.isSource(snapshot) {
		return
	}
	name := contentName(snapshot)
	if content, there := get[*snapshotv1.VolumeSnapshotContent](s.world.server, name); there && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		s.world.server.remove(objectKey{"VolumeSnapshotContent", name})
		if i := s.images[name]; i != nil {
			delete(s.images, name)
			s.world.law.data.destroyed(i.claim, i.written)
		}
	}
	s.say("snapshot %s is gone", snapshot.Name)
	s.world.server.remove(objectKey{"VolumeSnapshot", snapshot.Name})
	s.releaseClaim(snapshot)
}

// isSource reports whether a volume is being made from a snapshot: as long as that takes,
// the snapshot stays.
func (s *storage) isSource(snapshot *snapshotv1.VolumeSnapshot) bool {
	return len(s.pendingFrom(snapshot)) > 0
}

// isUnusedSource reports whether a snapshot is the source of a volume that is never made:
// the set no longer wants the pod of its claim.
func (s *storage) isUnusedSource(snapshot *snapshotv1.VolumeSnapshot) bool {
	set := s.world.set()
	return set != nil && slices.ContainsFunc(s.pendingFrom(snapshot), func(claim *corev1.PersistentVolumeClaim) bool {
		_, pod := splitClaim(claim.Name)
		return !isOnTrial(claim) && !slices.Contains(s.world.names(set), pod)
	})
}

// pendingFrom returns the claims whose volumes are to be made from a snapshot.
func (s *storage) pendingFrom(snapshot *snapshotv1.VolumeSnapshot) []*corev1.PersistentVolumeClaim {
	claims := slices.Collect(maps.Values(all[*corev1.PersistentVolumeClaim](s.world.server)))
	return slices.DeleteFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase != corev1.ClaimPending || claim.Spec.DataSource == nil || claim.Spec.DataSource.Name != snapshot.Name
	})
}

// createSnapshotClasses makes the objects that tell what drivers can.
func (s *storage) createSnapshotClasses() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.snapshotters)) {
		errs = append(errs, s.world.server.create(s.snapshotClass(name)))
	}
	for _, name := range []string{driverName, foreignDriver} {
		errs = append(errs, s.world.server.create(&storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(s.world.settings.volumes.attaches)},
		}))
	}
	return errs
}

// isSnapshotting reports whether a snapshot will be ready, or gone, if nothing else
// happens.
func (s *storage) isSnapshotting() bool {
	for _, snapshot := range all[*snapshotv1.VolumeSnapshot](s.world.server) {
		class := s.classOfSnapshot(snapshot)
		if snapshot.DeletionTimestamp != nil && !s.isUnusedSource(snapshot) {
			return true
		}
		if class == nil || isUsable(snapshot) {
			continue
		}
		d := s.snapshotters[class.Name]
		claim, there := get[*corev1.PersistentVolumeClaim](s.world.server, ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""))
		if there && claim.DeletionTimestamp == nil && class.Driver == s.provisionerOf(claim) && !d.hangs && d.failures >= 0 && d.uploads >= 0 {
			return true
		}
	}
	return false
}
