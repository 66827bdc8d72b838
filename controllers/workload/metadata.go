// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchMetadata patches metadata of an object if it still is as it was read. What
// the API server answers goes into the target.
func PatchMetadata(ctx context.Context, c client.Writer, obj, target client.Object, fields map[string]any) error {
	metadata := map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}
	maps.Copy(metadata, fields)
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, body))
}

// PodReference names a pod for a write, whose answer goes into it.
func PodReference(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}

// PatchOwners changes the owners of an object if it still is as it was read. The
// references are entries of a strategic merge patch, see [WithoutOwner].
func PatchOwners(ctx context.Context, c client.Writer, obj client.Object, references ...any) error {
	target, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil // no object of Kubernetes copies into something else
	}
	return PatchMetadata(ctx, c, obj, target, map[string]any{"ownerReferences": references})
}
