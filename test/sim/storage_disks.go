// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PersistentVolumes, and what pods write in them. Every write has a number of its own,
// so that it can be told where its bytes are.

// bytes are writes, the oldest first. What they hold is never changed, only extended.
type bytes []int

// unsynced is how many of the last writes of a volume are in the memory of its node
// only, until it is taken from there.
const unsynced = 3

// synced returns what has reached a volume.
func (v *volume) synced() bytes { return v.written[:v.safe:v.safe] }

// sync lets all that was written reach a volume.
func (v *volume) sync() { v.safe = len(v.written) }

// lose drops what has not reached a volume, because its node is gone.
func (s *storage) lose(v *volume) {
	if v.safe == len(v.written) {
		return
	}
	s.say("%s loses what was not synced: %v", v.name, v.written[v.safe:])
	s.world.law.data.forget(v.written[v.safe:])
	v.written = v.synced()
}

// writesEvery is how often a pod writes, in seconds.
const writesEvery = 3

// writeBytes lets the pods that run write to their volumes.
func (s *storage) writeBytes() {
	for _, node := range s.world.nodes {
		for _, uid := range slices.Sorted(maps.Keys(node.workers)) {
			if w := node.workers[uid]; node.isDead() {
				for _, v := range w.volumes {
					s.lose(v)
				}
			} else if w.writes() {
				for _, v := range w.volumes {
					s.acknowledge(w, v)
				}
			}
		}
	}
}

// writes reports whether a pod writes in this second.
func (w *worker) writes() bool {
	pod, there := get[*corev1.Pod](w.kubelet.world.server, w.name)
	if !there || pod.UID != w.uid || !w.mounted || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	runs := slices.ContainsFunc(slices.Collect(maps.Values(w.running)), func(c *container) bool { return c.waiting == "" })
	return runs && (int(w.now().Unix())+len(w.uid)+int(w.uid[len(w.uid)-1]))%writesEvery == 0
}

// acknowledge carries out a write of a pod, and lets the pod know.
func (s *storage) acknowledge(w *worker, v *volume) {
	if v.node != w.kubelet.node {
		return // the volume was taken away: the pod gets an error
	}
	s.lastWrite++
	v.written = append(v.written, s.lastWrite)
	v.safe = max(v.safe, len(v.written)-unsynced)
	s.world.law.data.acknowledged(w, v, s.lastWrite)
}

// image is what a snapshot holds.
type image struct {
	claim   string
	written bytes
	size    resource.Quantity
	mode    corev1.PersistentVolumeMode
}

const provisionedBy = "pv.kubernetes.io/provisioned-by"

// volumeOf returns the name of the volume that is made for a claim.
func volumeOf(claim *corev1.PersistentVolumeClaim) string { return "pv-" + string(claim.UID) }

// makeVolume makes a volume for a claim, with what is in a source; nil for none.
func (s *storage) makeVolume(claim *corev1.PersistentVolumeClaim, from *image) {
	class, _ := get[*storagev1.StorageClass](s.world.server, *claim.Spec.StorageClassName)
	policy := ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	v := &volume{
		name: volumeOf(claim), handle: "handle-" + volumeOf(claim), claim: claim.Name, size: requestOf(claim),
		attributes: ptr.Deref(claim.Spec.VolumeAttributesClassName, ""), class: class.Name,
	}
	if from != nil {
		v.written = slices.Clone(from.written)
		v.sync()
	}
	s.disks[v.name] = v
	err := s.world.server.create(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: v.name, Finalizers: finalizersAtCreation(policy), Annotations: map[string]string{provisionedBy: class.Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: v.size},
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, StorageClassName: class.Name,
			PersistentVolumeReclaimPolicy: policy,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: v.handle}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumePending},
	})
	if err != nil {
		s.world.violate("make volume %s: %w", v.name, err)
	}
}

// holds reports whether a disk or a snapshot holds a write.
func (s *storage) holds(write int) bool {
	for _, disks := range []map[string]*volume{s.disks, s.outside} {
		for _, v := range disks {
			if slices.Contains(v.written, write) {
				return true
			}
		}
	}
	for _, i := range s.images {
		if slices.Contains(i.written, write) {
			return true
		}
	}
	return false
}

// freeDisks takes volumes from nodes on which nothing uses them, and shows their size.
func (s *storage) freeDisks() {
	for _, handle := range slices.Sorted(maps.Keys(s.outside)) {
		s.free(s.outside[handle])
	}
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		v := s.disks[name]
		s.free(v)
		if pv := s.volumeNamed(name); compare(pv.Spec.Capacity[corev1.ResourceStorage], v.size) != 0 {
			mutate(s.world.server, name, func(pv *corev1.PersistentVolume) {
				pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: v.size}
			})
		}
	}
}

// uses reports whether a pod on the node of a volume has it mounted, or is about to.
func (s *storage) uses(pod *corev1.Pod, v *volume) bool {
	if pod.Spec.NodeName != v.node || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if w := s.world.worker(pod); w != nil && w.mounted {
		return slices.Contains(w.volumes, v)
	}
	claim, there := get[*corev1.PersistentVolumeClaim](s.world.server, v.claim)
	return there && s.volumes[claim.UID] == v
}

// attach shows that a volume is attached to a node, where the driver attaches.
func (s *storage) attach(v *volume) {
	if !s.world.settings.volumes.attaches {
		return
	}
	err := s.world.server.create(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + v.name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driverName, NodeName: v.node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.name}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	})
	if err != nil {
		s.world.violate("attach volume %s: %w", v.name, err)
	}
}
