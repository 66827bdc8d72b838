// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// MayRecreate reports whether there is something to judge about a claim that exists.
func (s *Session) MayRecreate(found, template *corev1.PersistentVolumeClaim) bool {
	return recreate.AsksForUndo(found) || volumes.RecordOf(found).Recreate != nil ||
		s.strategy.Recreates() && volumes.NeedsRecreate(found, template)
}

// Judge tells what is to be done about a claim that has its volume and is not, or is no
// more, what its template says: nil if nothing of this package.
func (s *Session) Judge(ctx context.Context, claim Claim, found *corev1.PersistentVolumeClaim) (*volumes.Recreation, error) {
	if s.NotPermitted {
		return blocked(recreate.ReasonRecreateNotPermitted, notPermitted), nil
	}
	if attempt := volumes.RecordOf(found).Recreate; attempt != nil {
		return s.goOn(claim, *attempt), nil
	}
	if found.Status.Phase != corev1.ClaimBound || !s.MayRecreate(found, claim.Template) {
		return nil, nil
	}
	if claim.Pod != nil && inplace.IsLost(claim.Pod, s.now) {
		return blocked(recreate.ReasonClaimInUse, "it is not known whether its pod still writes: its node does not answer"), nil
	}
	judgement, err := s.judge(ctx, claim, found, nil)
	if err != nil {
		return nil, err
	}
	if judgement.Refused != nil {
		return blocked(judgement.Refused.Reason, judgement.Refused.Message), nil
	}
	held, err := s.heldFor(ctx, found.Name)
	if err != nil {
		return nil, err
	}
	attempt := recreate.Begin(found, held, judgement, s.now)
	if recreate.NeedsTrial(attempt) {
		return &volumes.Recreation{
			State: volumes.Changing, Reason: recreate.ReasonClaimRecreating,
			Message: "it is to be recreated, and a first snapshot of it is taken while its pod runs", Attempt: &attempt,
		}, nil
	}
	return s.goOn(claim, attempt), nil
}

func blocked(reason, why string) *volumes.Recreation {
	return &volumes.Recreation{State: volumes.Blocked, Reason: reason, Message: "it is not recreated: " + why}
}

// goOn returns what comes next for an attempt as long as the pod is there: nil if there is
// nothing for the pod to do.
func (s *Session) goOn(claim Claim, attempt recreate.Attempt) *volumes.Recreation {
	switch {
	case attempt.Abandoned != "":
		return &volumes.Recreation{State: volumes.UnderWay, Reason: recreate.ReasonClaimRecreating, Message: "it is not recreated: " + attempt.Abandoned}
	case claim.Pod == nil:
		return nil
	case recreate.NeedsTrial(attempt):
		return nil // what it waits for was said when it was looked at, with the driver's words
	}
	message := "it is recreated from its own snapshot: its pod is stopped for that"
	switch attempt.Source {
	case appsv1beta1.VolumeRecreateSource:
		message = "it gets its volume " + attempt.Volume + " back: its pod is stopped for that"
	case appsv1beta1.EmptyRecreateSource:
		message = "it is recreated empty, and its volume held: its pod is stopped for that"
	case appsv1beta1.SnapshotRecreateSource:
	}
	stopped := recreate.Stop(attempt, claim.Pod, s.now)
	return &volumes.Recreation{State: volumes.Detaching, Reason: recreate.ReasonClaimRecreating, Message: message, Attempt: &stopped}
}

// judge reads what decides whether a claim can be recreated.
// snapshot is that of the claim; nil as long as there is none.
func (s *Session) judge(
	ctx context.Context, claim Claim, found *corev1.PersistentVolumeClaim, snapshot *snapshotv1.VolumeSnapshot,
) (recreate.Judgement, error) {
	facts := recreate.PreflightFacts{
		Claim: found, Template: claim.Template, Strategy: s.strategy, Owner: s.owner.GetUID(), HasSnapshot: snapshot != nil, Failed: claim.Failed,
		ClassName: volumehelpers.GetPersistentVolumeClaimClass(found),
	}
	if claim.Pod != nil {
		facts.Node = claim.Pod.Spec.NodeName
	}
	if snapshot != nil && snapshot.Status != nil {
		facts.RestoreSize = snapshot.Status.RestoreSize
	}
	if volumes.NamesClass(claim.Template) {
		facts.ClassName = volumehelpers.GetPersistentVolumeClaimClass(claim.Template)
	}
	readers := []func(context.Context, Claim, *recreate.PreflightFacts) error{s.readVolumes, s.readUsers, s.readQuotas, s.readClass, s.readSnapshotClasses, s.readCapacities}
	if recreate.GivesBack(found) {
		readers = readers[:3]
	}
	for _, read := range readers {
		if err := read(ctx, claim, &facts); err != nil {
			return recreate.Judgement{}, fmt.Errorf("see whether claim %s/%s can be recreated: %w", found.Namespace, found.Name, err)
		}
	}
	judgement := recreate.Preflight(facts)
	if judgement.Refused == nil {
		refused, err := s.rehearse(ctx, facts, judgement)
		if err != nil {
			return recreate.Judgement{}, fmt.Errorf("ask whether claim %s/%s may be recreated: %w", found.Namespace, found.Name, err)
		}
		judgement.Refused = refused
	}
	return judgement, nil
}

func (s *Session) readVolumes(ctx context.Context, _ Claim, facts *recreate.PreflightFacts) (err error) {
	if volumes.RecordOf(facts.Claim).Recreate == nil && !recreate.GivesBack(facts.Claim) {
		facts.Volume, err = s.recentVolume(ctx, facts.Claim.Spec.VolumeName)
		return err
	}
	if facts.Volume, err = s.volume(ctx, facts.Claim.Spec.VolumeName); err != nil {
		return err
	}
	facts.Held, err = s.heldBy(ctx, facts.Claim)
	return err
}

// recentVolume is volume, of up to a recentPeriod ago: many claims may wait for their
// turn, and are judged each time.
func (s *Session) recentVolume(ctx context.Context, name string) (*recreate.Volume, error) {
	if known, ok := s.recent.Get(name); ok {
		if read, isRead := known.(readVolume); isRead && s.now.Before(read.at.Add(recentPeriod)) {
			return read.volume, nil
		}
	}
	return s.volume(ctx, name)
}

func (s *Session) readUsers(ctx context.Context, claim Claim, facts *recreate.PreflightFacts) error {
	users, err := s.usersOf(ctx, facts.Claim, nil, nil)
	facts.OtherUsers = slices.DeleteFunc(users, func(name string) bool { return claim.Pod != nil && name == claim.Pod.Name })
	return err
}

func (s *Session) readClass(ctx context.Context, _ Claim, facts *recreate.PreflightFacts) error {
	name := facts.ClassName
	if _, known := s.classes[name]; !known && name != "" {
		class := &storagev1.StorageClass{}
		exists, err := s.get(ctx, client.ObjectKey{Name: name}, class)
		if err != nil {
			return err
		}
		if !exists {
			class = nil
		}
		s.classes[name] = class
	}
	facts.Class = s.classes[name]
	return nil
}

func (s *Session) readSnapshotClasses(ctx context.Context, _ Claim, facts *recreate.PreflightFacts) error {
	list, err := s.snapshotClasses.read(func() (*snapshotv1.VolumeSnapshotClassList, error) {
		list := &snapshotv1.VolumeSnapshotClassList{}
		err := s.live.List(ctx, list)
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return list, err
	})
	if list != nil {
		facts.SnapshotsServed, facts.SnapshotClasses = true, list.Items
	}
	return err
}

func (s *Session) readQuotas(ctx context.Context, _ Claim, facts *recreate.PreflightFacts) (err error) {
	facts.Quotas, err = s.quotas.read(func() ([]corev1.ResourceQuota, error) {
		list := &corev1.ResourceQuotaList{}
		err := s.live.List(ctx, list, client.InNamespace(s.owner.GetNamespace()))
		return list.Items, err
	})
	return err
}

func (s *Session) readCapacities(ctx context.Context, _ Claim, facts *recreate.PreflightFacts) (err error) {
	facts.Capacities, err = s.capacities.read(func() ([]storagev1.CSIStorageCapacity, error) {
		list := &storagev1.CSIStorageCapacityList{}
		err := s.live.List(ctx, list)
		return list.Items, err
	})
	return err
}
