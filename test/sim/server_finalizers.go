// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validateFinalizers refuses finalizers that are put on what is being deleted.
func validateFinalizers(before, after client.Object) error {
	added := sets.New(after.GetFinalizers()...).Delete(before.GetFinalizers()...)
	if before.GetDeletionTimestamp() == nil || added.Len() == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: kindOf(after)}, after.GetName(), field.ErrorList{
		field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted"),
	})
}

// removeUnheld removes an object that is deleted when its last finalizer is gone. The kubelet
// has its say about pods: see finish.
func (s *server) removeUnheld(key objectKey) {
	held, exists := s.objects[key]
	if _, isPod := held.(*corev1.Pod); !exists || isPod {
		return
	}
	if held.GetDeletionTimestamp() != nil && len(held.GetFinalizers()) == 0 {
		s.remove(key)
	}
}
