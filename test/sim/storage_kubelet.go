// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What nodes do to volumes.

// nodal is what a kubelet remembers of a volume that is to grow.
type nodal struct {
	// at is when it acts next; zero if it has not noticed.
	at time.Time
	// calls counts the calls that failed.
	calls, failures int
	// refused: the driver says that the volume is in use; it is not asked again while
	// it is mounted.
	refused bool
}

// begin lets the kubelet notice again.
func (n *nodal) begin() { *n = nodal{refused: n.refused, calls: n.calls} }

// forceDetachAfter is when a volume is taken from a node that does not answer.
const forceDetachAfter = 6 * time.Minute

// free takes a volume from a node on which nothing uses it any more.
func (s *storage) free(v *volume) {
	if v.node == "" {
		return
	}
	now, node := s.now(), s.nodeNamed(v.node)
	inUse := false
	for _, pod := range s.podsWith(v.claim) {
		inUse = inUse || s.uses(pod, v)
	}
	if inUse {
		v.freeAt = time.Time{}
		return
	}
	if v.freeAt.IsZero() {
		v.freeAt = s.soon()
		if node.isDead() {
			v.freeAt = now.Add(forceDetachAfter)
		}
	}
	if now.Before(v.freeAt) || node.isDead() && now.Before(node.deadSince.Add(forceDetachAfter)) {
		return
	}
	if node.isDead() {
		s.lose(v)
	}
	v.sync()
	v.node, v.freeAt, v.nodal = "", time.Time{}, nodal{}
	s.world.server.remove(objectKey{"VolumeAttachment", "csi-" + v.name})
}

func (s *storage) nodeNamed(name string) *kubelet {
	i := slices.IndexFunc(s.world.nodes, func(k *kubelet) bool { return k.node == name })
	return s.world.nodes[i]
}

// mount attaches and mounts the volumes of a pod, and grows those that are to; it
// reports whether the containers of the pod may start.
func (w *worker) mount(pod *corev1.Pod) bool {
	s := w.kubelet.world.storage
	if s == nil || w.mounted {
		return true
	}
	var mounted []*volume
	for _, name := range claimsOf(pod) {
		claim, ok := get[*corev1.PersistentVolumeClaim](s.world.server, name)
		if !ok || claim.Status.Phase != corev1.ClaimBound {
			return false
		}
		mounted = append(mounted, s.volumes[claim.UID])
		v := s.volumes[claim.UID]
		switch v.node {
		case w.kubelet.node:
		case "":
			if v.growth.call != nil && s.driverOf(claim).offline {
				return false // the driver has it
			}
			v.node, v.freeAt, v.nodal = w.kubelet.node, time.Time{}, nodal{}
			s.attach(v)
			return false // that takes a moment
		default:
			return false // another node has it
		}
		if !s.growAtMount(v, claim) {
			return false
		}
	}
	w.mounted, w.volumes = true, mounted
	for _, v := range mounted {
		s.world.law.data.mounted(w, v)
	}
	return true
}

// growAtMount lets a node grow a volume that it mounts; it reports whether the
// volume is mounted then.
func (s *storage) growAtMount(v *volume, claim *corev1.PersistentVolumeClaim) bool {
	if !isForNode(claim) {
		return true
	}
	if s.now().Before(v.nodal.at) {
		return false
	}
	d := s.driverOf(claim)
	if d.remount {
		d.nodeCode = ""
	}
	err := s.expandOnNode(v, claim, d)
	return err == nil || err.code == "FailedPrecondition"
}

// isForNode reports whether a node is to grow a volume.
func isForNode(claim *corev1.PersistentVolumeClaim) bool {
	status := growthStatus(claim)
	return status == corev1.PersistentVolumeClaimNodeResizePending || status == corev1.PersistentVolumeClaimNodeResizeInProgress
}

// growVolumes grows the mounted volumes of a pod, when the kubelet notices.
func (w *worker) growVolumes(pod *corev1.Pod) {
	s := w.kubelet.world.storage
	if s == nil || !w.mounted || pod.DeletionTimestamp != nil {
		return
	}
	for _, name := range claimsOf(pod) {
		claim, ok := get[*corev1.PersistentVolumeClaim](s.world.server, name)
		if !ok || s.volumes[claim.UID] == nil || !isForNode(claim) {
			continue
		}
		v, now := s.volumes[claim.UID], s.now()
		switch n := &v.nodal; {
		case n.refused, v.node != w.kubelet.node:
		case n.at.IsZero():
			n.at = now.Add(time.Second + s.world.choices.seconds(s.world.settings.volumes.nodeDelay))
		case now.Before(n.at):
		case growthStatus(claim) == corev1.PersistentVolumeClaimNodeResizePending:
			n.at = now.Add(time.Second)
			s.write(name, func(claim *corev1.PersistentVolumeClaim) {
				setGrowthStatus(claim, corev1.PersistentVolumeClaimNodeResizeInProgress)
			})
		default:
			_ = s.expandOnNode(v, claim, s.driverOf(claim)) // it is written into the claim
		}
	}
}

// expandOnNode grows a volume on its node, and writes down what comes of it.
func (s *storage) expandOnNode(v *volume, claim *corev1.PersistentVolumeClaim, d driver) *rpcError {
	n, now := &v.nodal, s.now()
	if d.nodeCode == "" || d.nodeFailures != forever && n.calls >= d.nodeFailures {
		size := claim.Status.AllocatedResources[corev1.ResourceStorage]
		s.say("%s has grown to %s on %s", v.claim, size.String(), v.node)
		s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) { finishGrowth(claim, size) })
		v.nodal = nodal{}
		return nil
	}
	n.calls++
	err := &rpcError{d.nodeCode, "as simulated"}
	s.say("%s does not grow on %s: %v", v.claim, v.node, err)
	n.at = now.Add(min(time.Second<<min(n.failures, 7), 2*time.Minute))
	n.failures++
	n.refused = err.code == "FailedPrecondition"
	s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
		status := corev1.PersistentVolumeClaimNodeResizeInProgress
		if err.isInfeasible() {
			status = corev1.PersistentVolumeClaimNodeResizeInfeasible
		}
		setGrowthStatus(claim, status)
		if claimCondition(claim, corev1.PersistentVolumeClaimNodeResizeError) == nil { // the first of its kind stays
			s.setClaimCondition(claim, corev1.PersistentVolumeClaimNodeResizeError, "failed to expand pvc: NodeExpandVolume failed to expand the volume : "+err.Error())
		}
	})
	return err
}
