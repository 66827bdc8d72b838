// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// EnsureUnneeded returns an error for what is kept because a claim needs it.
func EnsureUnneeded(kept report.KeptStorage) error {
	switch {
	case kept.State == recreate.KeptNeeded:
		return fmt.Errorf("%s: claim %s/%s needs it: it is being recreated from it, or waits for you to say what it is to have; kubectl insitu why statefulset.apps.kruise.io/%s says which",
			kept.Ref(), kept.Namespace, kept.Kept.Claim, kept.StatefulSet)
	case kept.State == recreate.KeptDeleting:
		return fmt.Errorf("%s: it is being deleted", kept.Ref())
	case kept.Volume != nil && kept.Volume.Status.Phase != corev1.VolumeReleased:
		return fmt.Errorf("%s: found phase %s, accepted is Released: a claim has it, or may get it", kept.Ref(), kept.Volume.Status.Phase)
	default:
		return nil
	}
}

// Discard has Kubernetes delete something that is kept, with its data. It fails with a
// conflict if another client has changed it meanwhile.
func Discard(ctx context.Context, c client.Client, kept report.KeptStorage, options ...client.PatchOption) error {
	if err := EnsureUnneeded(kept); err != nil {
		return err
	}
	if kept.Volume != nil {
		return patch(ctx, c, kept.Volume.DeepCopy(), map[string]any{
			"metadata": map[string]any{"finalizers": withoutOurs(kept.Volume.Finalizers)},
			"spec":     map[string]any{"persistentVolumeReclaimPolicy": corev1.PersistentVolumeReclaimDelete},
		}, options)
	}
	return deleteSnapshot(ctx, c, kept.Snapshot, options)
}

// Release makes something that is kept an object like any other: Insitu neither gives it
// back nor deletes it, and lists it no more. Its data stays.
func Release(ctx context.Context, c client.Client, kept report.KeptStorage, options ...client.PatchOption) error {
	if err := EnsureUnneeded(kept); err != nil {
		return err
	}
	if kept.Volume != nil {
		return patch(ctx, c, kept.Volume.DeepCopy(), map[string]any{"metadata": map[string]any{
			"finalizers":  withoutOurs(kept.Volume.Finalizers),
			"annotations": map[string]any{appsv1beta1.HeldVolumeStateKey: nil, appsv1beta1.TakeOverAnnotation: nil},
			"labels":      map[string]any{appsv1beta1.ClaimLabel: nil, appsv1beta1.ClaimNamespaceLabel: nil},
		}}, options)
	}
	return patch(ctx, c, kept.Snapshot.DeepCopy(), map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{appsv1beta1.RecreateOfAnnotation: nil}, "labels": map[string]any{appsv1beta1.ClaimLabel: nil},
	}}, options)
}

func withoutOurs(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool { return finalizer == appsv1beta1.HeldVolumeFinalizer })
}

// patch writes a merge patch to an object, if that still is as it was read.
func patch(ctx context.Context, c client.Client, object client.Object, body map[string]any, options []client.PatchOption) error {
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	body["metadata"] = metadata
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), options...)
}

// deleteSnapshot deletes a snapshot with what the driver stores of it, which a class with
// the deletion policy Retain would leave behind.
func deleteSnapshot(ctx context.Context, c client.Client, snapshot *snapshotv1.VolumeSnapshot, options []client.PatchOption) error {
	patched := (&client.PatchOptions{}).ApplyOptions(options)
	if status := snapshot.Status; status != nil && status.BoundVolumeSnapshotContentName != nil {
		content := &snapshotv1.VolumeSnapshotContent{}
		err := c.Get(ctx, client.ObjectKey{Name: *status.BoundVolumeSnapshotContentName}, content)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && content.Spec.VolumeSnapshotRef.UID == snapshot.UID && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
			body := map[string]any{"spec": map[string]any{"deletionPolicy": snapshotv1.VolumeSnapshotContentDelete}}
			if err := patch(ctx, c, content, body, options); err != nil {
				return err
			}
		}
	}
	return c.Delete(ctx, snapshot, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &snapshot.UID}, DryRun: patched.DryRun})
}
