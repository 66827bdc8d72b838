// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// Snapshots are listed to tell what is kept of recreated claims.
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=list

// KeptPeriod is for how long it is believed what is kept, if the workload has not changed it:
// users delete volumes and snapshots, and drivers take their time.
const KeptPeriod = 5 * time.Minute

// kept is what was read of the namespace of a workload.
type kept struct {
	volumes   []recreate.Volume
	snapshots []snapshotv1.VolumeSnapshot
	at        time.Time
}

type keptKey struct{ owner types.UID }

// Kept returns what is kept of the claims of a workload. claim returns a claim of its
// namespace, and isOurs tells by its name whether a claim, which may not exist any more, is
// one of the workload.
func (s *Session) Kept(ctx context.Context, claim func(string) *corev1.PersistentVolumeClaim, isOurs func(string) bool) ([]recreate.Kept, error) {
	if s.NotPermitted {
		return nil, nil
	}
	known, ok := s.lastKept()
	if !ok {
		read, err := s.readKept(ctx)
		if err != nil {
			return nil, err
		}
		known = read
		s.recent.Set(keptKey{s.owner.GetUID()}, known, KeptPeriod)
	}
	facts := recreate.KeptFacts{Volumes: known.volumes, Claim: claim, Strategy: func(owner types.UID, claim string) (appsv1beta1.VolumeClaimUpdateStrategy, bool) {
		return s.strategy, owner == s.owner.GetUID() || owner == "" && isOurs(claim)
	}}
	for i := range known.snapshots {
		snapshot := &known.snapshots[i]
		name := ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "")
		if !isOurs(name) {
			continue
		}
		if !recreate.IsStray(snapshot, claim(name)) {
			facts.Snapshots = append(facts.Snapshots, *snapshot)
		} else if err := s.dropStray(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	var ours []recreate.Kept
	for _, one := range recreate.Keep(facts, s.now) {
		if isOurs(one.Claim) && (one.Owner == "" || one.Owner == s.owner.GetUID()) {
			ours = append(ours, one)
		}
	}
	return ours, nil
}

// HasGone reports whether something is gone that is noted on a claim to be kept for it, as
// far as it is known what is kept.
func (s *Session) HasGone(claim *corev1.PersistentVolumeClaim) bool {
	known, ok := s.lastKept()
	return ok && recreate.HasGone(claim, known.volumes, known.snapshots)
}

// lastKept returns what was read a while ago, if nothing was written since.
func (s *Session) lastKept() (kept, bool) {
	last, _ := s.recent.Get(keptKey{s.owner.GetUID()})
	known, ok := last.(kept)
	return known, ok && s.now.Before(known.at.Add(KeptPeriod))
}

func (s *Session) readKept(ctx context.Context) (kept, error) {
	read := kept{at: s.now}
	all, err := s.heldVolumes(ctx)
	if err != nil {
		return read, err
	}
	for i := range all {
		volume, err := recreate.NewVolume(&all[i])
		if err != nil {
			return read, err
		}
		read.volumes = append(read.volumes, volume)
	}
	list := &snapshotv1.VolumeSnapshotList{}
	err = s.live.List(ctx, list, client.InNamespace(s.owner.GetNamespace()), client.HasLabels{appsv1beta1.ClaimLabel})
	if err != nil && !meta.IsNoMatchError(err) {
		return read, fmt.Errorf("list snapshots of claims of namespace %s: %w", s.owner.GetNamespace(), err)
	}
	read.snapshots = list.Items
	return read, nil
}
