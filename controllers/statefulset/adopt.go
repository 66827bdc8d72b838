// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// adopt takes over pods and revisions without a controller that have the labels
// and the name of those of the set: it was deleted with --cascade=orphan and
// made again. With its revisions, what its pods were made from is known, and
// they can be changed in place.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	var err error
	if s.selector, err = metav1.LabelSelectorAsSelector(s.set.Spec.Selector); err != nil {
		return specError{fmt.Errorf("read spec.selector of StatefulSet %s/%s: %w", s.set.Namespace, s.set.Name, err)}
	}
	orphans, err := r.orphans(ctx, s.set, s.selector)
	if err != nil || len(orphans) == 0 {
		return err
	}
	if err := r.confirmOwner(ctx, s.set); err != nil {
		return err
	}
	for _, orphan := range orphans {
		if err := r.setOwner(ctx, s.set, orphan); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("adopt %T %s/%s: %w", orphan, orphan.GetNamespace(), orphan.GetName(), err)
		}
	}
	return nil
}

// orphans returns the objects to adopt, revisions first.
func (r *Reconciler) orphans(ctx context.Context, set *appsv1beta1.StatefulSet, selector labels.Selector) ([]client.Object, error) {
	var found []client.Object
	revisions := &appsv1.ControllerRevisionList{}
	if err := podcache.Orphans(ctx, r.client, set.Namespace, revisions, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		if revision := &revisions.Items[i]; strings.HasPrefix(revision.Name, set.Name+"-") && revision.DeletionTimestamp == nil {
			found = append(found, revision)
		}
	}
	pods := &corev1.PodList{}
	if err := podcache.Orphans(ctx, r.client, set.Namespace, pods, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if _, ours := ordinalOf(set.Name, pods.Items[i].Name); ours && pods.Items[i].DeletionTimestamp == nil {
			found = append(found, &pods.Items[i])
		}
	}
	return found, nil
}

// confirmOwner asks the API server whether the set still is what the cache says.
// A set that is being deleted with --cascade=orphan has just let its pods go;
// if it took them back, they would be deleted with it. One whose spec changed may
// want pods again whose claims were about to go with them.
func (r *Reconciler) confirmOwner(ctx context.Context, set *appsv1beta1.StatefulSet) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
		return fmt.Errorf("confirm StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	if live.UID != set.UID || live.DeletionTimestamp != nil {
		return fmt.Errorf("StatefulSet %s/%s was deleted meanwhile: nothing is given to it", set.Namespace, set.Name)
	}
	if live.Generation != set.Generation {
		return apierrors.NewConflict(appsv1beta1.GroupVersion.WithResource("statefulsets").GroupResource(), set.Name, errors.New("its spec changed"))
	}
	return nil
}

func (r *Reconciler) setOwner(ctx context.Context, set *appsv1beta1.StatefulSet, orphan client.Object) error {
	target, ok := orphan.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy of %T is no object", orphan)
	}
	return r.patchMetadata(ctx, orphan, target, map[string]any{
		"ownerReferences": []*metav1.OwnerReference{metav1.NewControllerRef(set, kind)},
	})
}

// patchMetadata patches metadata of an object if it still is as it was read. What
// the API server answers goes into the target.
func (r *Reconciler) patchMetadata(ctx context.Context, obj, target client.Object, fields map[string]any) error {
	metadata := map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}
	maps.Copy(metadata, fields)
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, body))
}
