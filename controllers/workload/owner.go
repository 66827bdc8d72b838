// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is a workload, and its kind.
type Owner struct {
	client.Object
	Kind schema.GroupVersionKind
	// OwnsClaims: its claims have the workload as their owner, so one that a pod owns is about
	// to be deleted with that pod.
	OwnsClaims bool
	// MarksByHash: its pods have the hash of their revision in their label, and not its name.
	MarksByHash bool
}

// Reference returns the reference by which an object is controlled by the owner.
func (o Owner) Reference() *metav1.OwnerReference {
	return metav1.NewControllerRef(o, o.Kind)
}

// String says which workload it is: StatefulSet default/sample.
func (o Owner) String() string {
	return fmt.Sprintf("%s %s/%s", o.Kind.Kind, o.GetNamespace(), o.GetName())
}

// Confirm asks the API server whether the owner still is what the cache says. A
// workload that is being deleted with --cascade=orphan has just released its pods;
// if it took them back, they would be deleted with it. One whose spec changed may
// want pods again whose claims were about to go with them.
func (o Owner) Confirm(ctx context.Context, live client.Reader) error {
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(o.Kind)
	if err := live.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
		return fmt.Errorf("confirm %s: %w", o, err)
	}
	if current.UID != o.GetUID() || current.DeletionTimestamp != nil {
		return fmt.Errorf("%s was deleted meanwhile: nothing is given to it", o)
	}
	if current.Generation != o.GetGeneration() {
		resource, _ := meta.UnsafeGuessKindToResource(o.Kind)
		return apierrors.NewConflict(resource.GroupResource(), o.GetName(), errors.New("its spec changed"))
	}
	return nil
}

// IsEarlier reports whether a reference is to a workload of the owner's name that
// was deleted. What that owns is about to be deleted, too.
func (o Owner) IsEarlier(reference *metav1.OwnerReference) bool {
	return IsKind(reference, o.Kind) && reference.Name == o.GetName() && reference.UID != o.GetUID()
}

// IsKind reports whether a reference is to an object of a kind, in any version
// of its group.
func IsKind(reference *metav1.OwnerReference, kind schema.GroupVersionKind) bool {
	if reference == nil || reference.Kind != kind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && gv.Group == kind.Group
}

// WithoutOwner is the entry of a strategic merge patch that removes an owner.
func WithoutOwner(uid types.UID) any {
	return map[string]any{"$patch": "delete", "uid": uid}
}
