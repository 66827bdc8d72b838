// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// turn lets everybody but the operator do one thing, which takes a second. It reports
// whether there was anything to do.
func (s *storage) turn() bool {
	moved := false
	for _, sync := range []func() bool{s.syncPod, s.syncSnapshots, s.syncTrial, s.syncClaim, s.syncVolumes} {
		moved = sync() || moved
	}
	s.now = s.now.Add(time.Second)
	return moved
}

// syncPod is scheduler and kubelet. A pod writes as long as it runs.
func (s *storage) syncPod() bool {
	p := s.pod
	if p == nil {
		return false
	}
	if p.scheduled && s.claim != nil && s.claim.Status.Phase == corev1.ClaimBound {
		s.acknowledged++
		v := s.stored[s.claim.Spec.VolumeName]
		v.data = append(v.data, s.acknowledged)
	}
	switch before := *p; {
	case p.leaving:
		s.pod = nil
		return true
	case s.claim == nil || s.claim.DeletionTimestamp != nil || s.claim.Status.Phase != corev1.ClaimBound:
		return false
	default:
		p.ready, p.scheduled = p.scheduled && !s.sick, true
		return *p != before
	}
}

// syncSnapshots is the snapshot controller with the driver.
func (s *storage) syncSnapshots() bool {
	moved := false
	for name, snapshot := range s.snapshots {
		switch {
		case snapshot.DeletionTimestamp != nil:
			if s.claim == nil || s.claim.Status.Phase != corev1.ClaimPending || dataSource(s.claim) != name {
				delete(s.snapshots, name)
				s.unprotect()
				moved = true
			}
		case IsReady(snapshot.VolumeSnapshot):
		case s.failing:
			if snapshotError(snapshot.VolumeSnapshot) != s.refusal() {
				snapshot.Status = &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{Message: ptr.To(s.refusal()), Time: ptr.To(metav1.NewTime(s.now))}}
			}
		case s.claim != nil && s.claim.Status.Phase == corev1.ClaimBound && ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "") == claimName:
			v := s.stored[s.claim.Spec.VolumeName]
			if snapshot.data == nil {
				snapshot.data, moved = slices.Clone(v.data), true
			}
			snapshot.Status = &snapshotv1.VolumeSnapshotStatus{
				BoundVolumeSnapshotContentName: ptr.To("content-" + name), ReadyToUse: ptr.To(!s.stalled), RestoreSize: ptr.To(v.Spec.Capacity[corev1.ResourceStorage]),
			}
			if !s.stalled {
				s.unprotect()
				moved = true
			}
		}
	}
	return moved
}

// unprotect releases the claim, if no snapshot of it is being taken.
func (s *storage) unprotect() {
	for _, snapshot := range s.snapshots {
		if !IsReady(snapshot.VolumeSnapshot) && !s.failing {
			return
		}
	}
	if s.claim != nil {
		s.claim.Finalizers = slices.DeleteFunc(s.claim.Finalizers, func(name string) bool { return name != "example.com/backup" })
		s.touch()
	}
}

func dataSource(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.DataSource == nil {
		return ""
	}
	return claim.Spec.DataSource.Name
}

// syncClaim is the volume binder with the provisioner.
func (s *storage) syncClaim() bool {
	switch {
	case s.claim == nil:
		return false
	case s.claim.DeletionTimestamp != nil:
		if len(s.users()) > 0 || len(s.claim.Finalizers) > 0 {
			return false
		}
		if v := s.stored[s.claim.Spec.VolumeName]; v != nil && v.Spec.ClaimRef.UID == s.claim.UID {
			v.Status.Phase, v.ResourceVersion = corev1.VolumeReleased, s.next("v")
		}
		s.claim = nil
		return true
	case s.claim.Status.Phase == corev1.ClaimBound:
		return false
	default:
		return s.bind() || s.provision()
	}
}

// bind binds the claim to the volume that it names, if their classes are the same, or to
// one that is kept for a claim of its name: the binder does not look at the snapshot then.
func (s *storage) bind() bool {
	request := s.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for name, v := range s.stored {
		capacity := v.Spec.Capacity[corev1.ResourceStorage]
		isNamed := s.claim.Spec.VolumeName == name
		if v.Status.Phase != corev1.VolumeAvailable || !isNamed && (s.claim.Spec.VolumeName != "" || capacity.Cmp(request) < 0) {
			continue
		}
		if isNamed && ptr.Deref(s.claim.Spec.StorageClassName, "") != v.Spec.StorageClassName {
			continue
		}
		s.bound(v)
		return true
	}
	return false
}

func (s *storage) bound(v *storedVolume) {
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claimName, UID: s.claim.UID}
	v.Status.Phase, v.ResourceVersion = corev1.VolumeBound, s.next("v")
	s.claim.Spec.VolumeName = v.Name
	s.claim.Status.Phase, s.claim.Status.Capacity = corev1.ClaimBound, v.Spec.Capacity.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	s.touch()
}

// provision makes a volume for the claim.
func (s *storage) provision() bool {
	class := ptr.Deref(s.claim.Spec.StorageClassName, "")
	if s.stuck {
		s.complain(s.claim)
	}
	if s.stuck || s.lazy && s.pod == nil || s.claim.Spec.VolumeName != "" || class == "missing" {
		return false
	}
	var data []int
	if name := dataSource(s.claim); name != "" {
		snapshot := s.snapshots[name]
		if snapshot == nil || !IsReady(snapshot.VolumeSnapshot) || s.claim.Spec.Resources.Requests.Storage().Cmp(*snapshot.Status.RestoreSize) < 0 {
			return false
		}
		data = slices.Clone(snapshot.data)
	}
	name := s.next("pv")
	v := &storedVolume{data: data, PersistentVolume: &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(s.now)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: s.claim.Spec.AccessModes, VolumeMode: s.claim.Spec.VolumeMode,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: s.claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		},
	}}
	s.stored[name] = v
	s.bound(v)
	return true
}

// syncVolumes deletes the volumes that are released and not to be kept.
func (s *storage) syncVolumes() bool {
	moved := false
	for name, v := range s.stored {
		if v.Status.Phase == corev1.VolumeReleased && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			delete(s.stored, name)
			moved = true
		}
	}
	return moved
}

// lost returns what was written and is in no volume any more.
func (s *storage) lost() []int {
	var lost []int
	for write := 1; write <= s.acknowledged; write++ {
		found := false
		for _, v := range s.stored {
			found = found || slices.Contains(v.data, write)
		}
		if !found {
			lost = append(lost, write)
		}
	}
	return lost
}

// missing returns what was written and is not in the volume of the claim.
func (s *storage) missing() []int {
	var missing []int
	for write := 1; write <= s.acknowledged; write++ {
		if !slices.Contains(s.stored[s.claim.Spec.VolumeName].data, write) {
			missing = append(missing, write)
		}
	}
	return missing
}
