// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnerIndex finds Pods, ControllerRevisions, PersistentVolumeClaims and
// ReplicaSets by the UID of their controller, or those without a controller by
// orphan.
const OwnerIndex = "metadata.controller"

// orphan is the value of OwnerIndex for objects without a controller. No UID
// looks like it.
const orphan = "none"

// Index is an index of a cache: the values by which objects of a kind are found.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Indexes returns every index of this package.
func Indexes() []Index {
	return []Index{
		{&corev1.Pod{}, OwnerIndex, ownerOf},
		{&corev1.PersistentVolumeClaim{}, OwnerIndex, ownerOf},
		{&appsv1.ControllerRevision{}, OwnerIndex, ownerOf},
		{&appsv1.ReplicaSet{}, OwnerIndex, ownerOf},
		{&corev1.Pod{}, DrainingIndex, drainingOf},
		{&corev1.Pod{}, PullerIndex, pulledFor},
		{&discoveryv1.EndpointSlice{}, TargetIndex, targetsOf},
	}
}

// AddIndexes adds every index of this package. It must be called before the
// cache starts.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range Indexes() {
		if err := indexer.IndexField(ctx, index.Object, index.Field, index.Values); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.Object, index.Field, err)
		}
	}

	return nil
}

// ByOwner reads into list what has owner as its controller, told by the UID.
// The result is a copy that the caller may change; with
// client.UnsafeDisableDeepCopy it is not.
func ByOwner(ctx context.Context, reader client.Reader, owner client.Object, list client.ObjectList, options ...client.ListOption) error {
	return byIndex(ctx, reader, indexKey{namespace: owner.GetNamespace(), value: string(owner.GetUID())}, list, options)
}

// Orphans reads into list what has no controller in a namespace, being deleted
// or not. The result is a copy as for [ByOwner].
func Orphans(ctx context.Context, reader client.Reader, namespace string, list client.ObjectList, options ...client.ListOption) error {
	return byIndex(ctx, reader, indexKey{namespace: namespace, value: orphan}, list, options)
}

type indexKey struct {
	namespace, value string
}

func byIndex(ctx context.Context, reader client.Reader, key indexKey, list client.ObjectList, options []client.ListOption) error {
	options = append([]client.ListOption{
		client.InNamespace(key.namespace),
		client.MatchingFields{OwnerIndex: key.value},
	}, options...)
	if err := reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list %T in namespace %s by owner %s: %w", list, key.namespace, key.value, err)
	}

	return nil
}

func ownerOf(obj client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return []string{orphan}
	}

	return []string{string(owner.UID)}
}
