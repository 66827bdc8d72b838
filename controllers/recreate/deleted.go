// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// Unprotect takes the finalizer of the operator off the held volumes whose StatefulSet was
// deleted while a claim was being recreated. No other controller does that, and
// without it the volumes could not be deleted. The volumes stay, and so do the marks on
// them: a user can still hand them to another set.
//
// An empty namespace means all.
func (r *Recreator) Unprotect(ctx context.Context, namespace string) error {
	list, selector := &corev1.PersistentVolumeList{}, client.ListOption(client.HasLabels{appsv1beta1.ClaimNamespaceLabel})
	if namespace != "" {
		selector = client.MatchingLabels{appsv1beta1.ClaimNamespaceLabel: namespace}
	}
	if err := r.live.List(ctx, list, selector); err != nil {
		return fmt.Errorf("list held volumes: %w", err)
	}
	owners := map[string]sets.Set[types.UID]{}
	var errs []error
	for i := range list.Items {
		pv := &list.Items[i]
		held, err := recreate.NewVolume(pv)
		if err != nil || held.State == nil || held.State.OwnerUID == "" || !slices.Contains(pv.Finalizers, appsv1beta1.HeldVolumeFinalizer) {
			continue
		}
		in := held.State.Namespace
		if owners[in] == nil {
			if owners[in], err = r.ownersIn(ctx, in); err != nil {
				return err
			}
		}
		if owners[in].Has(held.State.OwnerUID) || owners[in].Has(types.UID(pv.Annotations[appsv1beta1.TakeOverAnnotation])) {
			continue
		}
		errs = append(errs, r.unprotect(ctx, pv))
	}
	return errors.Join(errs...)
}

// ownersIn returns the UIDs of the StatefulSets of a namespace.
func (r *Recreator) ownersIn(ctx context.Context, namespace string) (sets.Set[types.UID], error) {
	list := &appsv1beta1.StatefulSetList{}
	if err := r.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list StatefulSets of namespace %s: %w", namespace, err)
	}
	owners := sets.New[types.UID]()
	for i := range list.Items {
		owners.Insert(list.Items[i].UID)
	}
	return owners, nil
}

// unprotect takes the finalizer off a volume, if the volume still is as it was read.
func (r *Recreator) unprotect(ctx context.Context, pv *corev1.PersistentVolume) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pv.UID, "resourceVersion": pv.ResourceVersion, "finalizers": finalizers(pv, false),
	}})
	if err != nil {
		return err
	}
	volume := &corev1.PersistentVolume{}
	volume.Name = pv.Name
	err = r.client.Patch(ctx, volume, client.RawPatch(types.MergePatchType, body), client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take finalizer %s off volume %s: %w", appsv1beta1.HeldVolumeFinalizer, pv.Name, err)
	}
	return nil
}
