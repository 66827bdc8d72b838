// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// PatchStatus writes the status of an object if the object differs from before, and reports whether
// it does. With the resource version as a precondition, an object of the same name that was made
// meanwhile does not get the status of the one before; that the object is gone is no error.
func PatchStatus(ctx context.Context, c client.Client, before, object client.Object) (differs bool, err error) {
	if apiequality.Semantic.DeepEqual(before, object) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		kind, kindErr := apiutil.GVKForObject(object, c.Scheme())
		if kindErr != nil {
			return true, kindErr
		}
		return true, fmt.Errorf("patch status of %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return true, nil
}
