// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"encoding/json"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// verbs say what an action does.
var verbs = map[recreate.Action]string{
	recreate.Note:           "note on the claim how far it is",
	recreate.CreateSnapshot: "create its snapshot",
	recreate.DeleteSnapshot: "delete its snapshot",
	recreate.HoldVolume:     "hold its volume",
	recreate.ReleaseVolume:  "release its volume",
	recreate.FreeVolume:     "free the volume for it",
	recreate.LockVolume:     "keep a volume from other claims",
	recreate.DiscardVolume:  "have its old volume deleted",
	recreate.DeleteClaim:    "delete it",
	recreate.CreateClaim:    "create it",

	recreate.CreateTrialClaim: "create the claim of its trial",
	recreate.DeleteTrialClaim: "delete the claim of its trial",
}

// write writes a step. Volumes and snapshots are in no cache that would have to catch up.
func (s *Session) write(ctx context.Context, facts recreate.Facts, step recreate.Step) error {
	switch step.Action {
	case recreate.Note:
		return s.note(ctx, step)
	case recreate.CreateSnapshot:
		return s.client.Create(ctx, step.Snapshot, client.DisableReadYourWritesConsistency)
	case recreate.DeleteSnapshot:
		return s.deleteSnapshot(ctx, step.Snapshot)
	case recreate.HoldVolume, recreate.ReleaseVolume, recreate.FreeVolume, recreate.LockVolume, recreate.DiscardVolume:
		s.recent.Delete(s.owner.GetUID()) // there are held volumes from now on
		return s.patchVolume(ctx, facts, step)
	case recreate.DeleteClaim:
		// The template that it differs from is that of the cache.
		if err := s.owner.Confirm(ctx, s.live); err != nil {
			return err
		}
		return s.client.Delete(ctx, step.Claim, client.Preconditions{UID: &step.Claim.UID, ResourceVersion: &step.Claim.ResourceVersion})
	case recreate.CreateClaim, recreate.CreateTrialClaim:
		return s.client.Create(ctx, step.Claim.DeepCopy())
	case recreate.DeleteTrialClaim:
		return client.IgnoreNotFound(s.client.Delete(ctx, step.Claim, client.Preconditions{UID: &step.Claim.UID}))
	case recreate.None, recreate.Wait:
		return nil
	default:
		return nil
	}
}

// deleteSnapshot deletes a snapshot with what the driver stores of it. A class with the
// deletion policy Retain would leave that behind, and nothing that names it.
//
// Source: https://kubernetes.io/docs/concepts/storage/volume-snapshot-classes/#deletion-policy
func (s *Session) deleteSnapshot(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	if snapshot.Status != nil && snapshot.Status.BoundVolumeSnapshotContentName != nil {
		content := &snapshotv1.VolumeSnapshotContent{}
		exists, err := s.get(ctx, client.ObjectKey{Name: *snapshot.Status.BoundVolumeSnapshotContentName}, content)
		if err != nil {
			return err
		}
		if exists && content.Spec.VolumeSnapshotRef.UID == snapshot.UID && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
			before := client.MergeFromWithOptions(content.DeepCopy(), client.MergeFromWithOptimisticLock{})
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentDelete
			if err := s.client.Patch(ctx, content, before, client.DisableReadYourWritesConsistency); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, snapshot, client.Preconditions{UID: &snapshot.UID}, client.DisableReadYourWritesConsistency))
}

func (s *Session) note(ctx context.Context, step recreate.Step) error {
	body, err := volumes.Patch{Record: step.Record}.Body(step.Claim)
	if err != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: step.Claim.Namespace, Name: step.Claim.Name}}
	return s.client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, body))
}

// patchVolume writes what a step says to a volume, if it still is as it was read.
func (s *Session) patchVolume(ctx context.Context, facts recreate.Facts, step recreate.Step) error {
	metadata := map[string]any{"uid": step.Volume.UID, "resourceVersion": step.Volume.ResourceVersion}
	spec := map[string]any{}
	switch step.Action {
	case recreate.HoldVolume:
		state, err := json.Marshal(step.State)
		if err != nil {
			return err
		}
		metadata["annotations"] = map[string]any{appsv1beta1.HeldVolumeStateKey: string(state)}
		metadata["labels"] = map[string]any{
			appsv1beta1.ClaimNamespaceLabel: step.State.Namespace, appsv1beta1.ClaimLabel: recreate.LabelValue(step.State.Claim),
		}
		metadata["finalizers"] = finalizers(step.Volume, step.State.ProvedTimestamp == nil)
		spec["persistentVolumeReclaimPolicy"] = corev1.PersistentVolumeReclaimRetain
	case recreate.ReleaseVolume:
		metadata["annotations"] = map[string]any{appsv1beta1.HeldVolumeStateKey: nil}
		metadata["labels"] = map[string]any{appsv1beta1.ClaimNamespaceLabel: nil, appsv1beta1.ClaimLabel: nil}
		metadata["finalizers"] = finalizers(step.Volume, false)
		spec["persistentVolumeReclaimPolicy"] = step.State.ReclaimPolicy
	case recreate.FreeVolume:
		spec["claimRef"] = map[string]any{
			"namespace": facts.Template.Namespace, "name": facts.Template.Name, "uid": nil, "resourceVersion": nil,
		}
	case recreate.LockVolume:
		spec["claimRef"] = map[string]any{"uid": step.State.ClaimUID}
	case recreate.DiscardVolume:
		spec["persistentVolumeReclaimPolicy"] = corev1.PersistentVolumeReclaimDelete
	case recreate.None, recreate.Wait, recreate.Note, recreate.CreateSnapshot, recreate.DeleteSnapshot, recreate.DeleteClaim, recreate.CreateClaim,
		recreate.CreateTrialClaim, recreate.DeleteTrialClaim:
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: step.Volume.Name}}
	return s.client.Patch(ctx, volume, client.RawPatch(types.MergePatchType, body), client.DisableReadYourWritesConsistency)
}

// finalizers returns those of a volume with ours, or without it. The object cannot go
// as long as it is all that tells what a missing claim is made from.
func finalizers(volume *corev1.PersistentVolume, held bool) []string {
	volume = volume.DeepCopy()
	controllerutil.RemoveFinalizer(volume, appsv1beta1.HeldVolumeFinalizer)
	if held {
		controllerutil.AddFinalizer(volume, appsv1beta1.HeldVolumeFinalizer)
	}
	return volume.Finalizers
}
