// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// adoptPods takes over pods without a controller that have the labels and the
// name of a pod of the set, for example after a deletion with --cascade=orphan.
func (r *Reconciler) adoptPods(ctx context.Context, s *scope) error {
	selector, err := metav1.LabelSelectorAsSelector(s.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("StatefulSet %s/%s: read spec.selector: %w", s.set.Namespace, s.set.Name, err)
	}
	list := &corev1.PodList{}
	err = podcache.Orphans(ctx, r.client, s.set.Namespace, list, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if _, ours := ordinalOf(s.set.Name, pod.Name); !ours || pod.DeletionTimestamp != nil {
			continue
		}
		if err := r.adopt(ctx, s.set, pod); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("adopt pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) adopt(ctx context.Context, set *appsv1beta1.StatefulSet, pod *corev1.Pod) error {
	owner := metav1.NewControllerRef(set, appsv1beta1.GroupVersion.WithKind("StatefulSet"))
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             pod.UID,
		"ownerReferences": []*metav1.OwnerReference{owner},
	}})
	if err != nil {
		return err
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	return r.client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, body))
}
