// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// Kept returns what is kept of recreated claims in a namespace; in all for an empty one.
func (c *Cluster) Kept(ctx context.Context, namespace string, now time.Time) ([]report.KeptStorage, error) {
	pvs, held := &corev1.PersistentVolumeList{}, client.ListOption(client.HasLabels{appsv1beta1.ClaimNamespaceLabel})
	if namespace != "" {
		held = client.MatchingLabels{appsv1beta1.ClaimNamespaceLabel: namespace}
	}
	if err := c.Client.List(ctx, pvs, held); err != nil {
		if IsForWantOfRights(err) {
			return nil, fmt.Errorf("volumes belong to no namespace, and it takes the right to list persistentvolumes to see them; status.volumeClaims of a StatefulSet has their sum: %w", err)
		}
		return nil, fmt.Errorf("list held volumes: %w", err)
	}
	of := map[string]*recreate.KeptFacts{}
	factsOf := func(namespace string) *recreate.KeptFacts {
		if of[namespace] == nil {
			of[namespace] = &recreate.KeptFacts{}
		}
		return of[namespace]
	}
	for i := range pvs.Items {
		volume, err := recreate.NewVolume(&pvs.Items[i])
		if err != nil {
			return nil, err
		}
		if volume.State != nil {
			facts := factsOf(volume.State.Namespace)
			facts.Volumes = append(facts.Volumes, volume)
		}
	}
	snapshots := &snapshotv1.VolumeSnapshotList{}
	if err := c.Client.List(ctx, snapshots, client.InNamespace(namespace), client.HasLabels{appsv1beta1.ClaimLabel}); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list snapshots: %w", Explain(err))
	}
	for i := range snapshots.Items {
		facts := factsOf(snapshots.Items[i].Namespace)
		facts.Snapshots = append(facts.Snapshots, snapshots.Items[i])
	}
	var kept []report.KeptStorage
	for _, namespace := range sets.List(sets.KeySet(of)) {
		sets, err := c.readOwners(ctx, namespace, of[namespace])
		if err != nil {
			return nil, err
		}
		kept = append(kept, report.NewKept(recreate.Keep(*of[namespace], now), sets)...)
	}
	return kept, nil
}

// readOwners adds the claims and StatefulSets of a namespace to the facts, and returns the
// latter.
func (c *Cluster) readOwners(ctx context.Context, namespace string, facts *recreate.KeptFacts) ([]appsv1beta1.StatefulSet, error) {
	claims, owners := &corev1.PersistentVolumeClaimList{}, &appsv1beta1.StatefulSetList{}
	for _, list := range []client.ObjectList{claims, owners} {
		if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list what is kept in namespace %s: %w", namespace, Explain(err))
		}
	}
	facts.Claim = func(name string) *corev1.PersistentVolumeClaim {
		i := slices.IndexFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == name })
		if i < 0 {
			return nil
		}
		return &claims.Items[i]
	}
	facts.Strategy = func(uid types.UID, claim string) (appsv1beta1.VolumeClaimUpdateStrategy, bool) {
		if owner := report.OwnerOf(owners.Items, uid, claim); owner != nil {
			return owner.Spec.VolumeClaimUpdateStrategy, true
		}
		return appsv1beta1.VolumeClaimUpdateStrategy{}, false
	}
	return owners.Items, nil
}
