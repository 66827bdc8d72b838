// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// preserve sees to it that an empty ReplicaSet has the template that the keeper had,
// and that none that is older than the keeper has the one that it has now: the
// Deployment would take that for its own, and recreate every pod.
func (w deployment) preserve(ctx context.Context, r *Reconciler, s *scope) error {
	before := s.history.Get(s.keeper.previous().revision)
	if before == nil {
		return nil // somebody deleted it: there is nothing to preserve
	}
	empty, err := w.emptyReplicaSets(ctx, r)
	if err != nil {
		return err
	}
	template, err := w.templateBefore(ctx, r, s.keeper, before.Template)
	if err != nil {
		return err
	}
	empty = slices.DeleteFunc(empty, func(rs *replicaSet) bool { return rs.UID == s.keeper.UID })
	isPreserved := slices.ContainsFunc(empty, func(rs *replicaSet) bool { return rs.template.Equal(before.Template) })
	for _, twin := range empty {
		if !twin.isOf(&s.keeper.Spec.Template) || isPreserved && compareAge(twin, s.keeper) > 0 {
			continue
		}
		if err := w.giveTemplate(ctx, r, twin, s.keeper, template); err != nil {
			return err
		}
		isPreserved = true
	}
	if isPreserved || ptr.Deref(w.Spec.RevisionHistoryLimit, 1) == 0 {
		return nil
	}
	return w.createEmpty(ctx, r, s.keeper, template)
}

// emptyReplicaSets reads those without pods, with their templates, from the API
// server.
func (w deployment) emptyReplicaSets(ctx context.Context, r *Reconciler) ([]*replicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read spec.selector of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	list := &appsv1.ReplicaSetList{}
	if err := r.live.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ReplicaSets of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	empty := slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool {
		return isLive(&rs) || rs.DeletionTimestamp != nil || !metav1.IsControlledBy(&rs, w.Deployment)
	})
	found, err := replicaSets(empty)
	slices.SortFunc(found, compareAge)
	return found, err
}

// giveTemplate makes an empty ReplicaSet what the keeper was in the history.
func (w deployment) giveTemplate(ctx context.Context, r *Reconciler, to, keeper *replicaSet, before map[string]any) error {
	annotations := replacing(to.Annotations, w.annotationsInHistory(keeper.previous()))
	return patchTemplate(ctx, r.client, to.ReplicaSet, before, annotations)
}

// templateBefore returns what the template of the keeper was. What is newer than this
// program is as it was, see promote, and no revision that we have made has it.
func (w deployment) templateBefore(ctx context.Context, r *Reconciler, keeper *replicaSet, before *inplace.Template) (map[string]any, error) {
	_, newer, err := r.readWhole(ctx, replicaSetKind, keeper.ReplicaSet, &keeper.Spec.Template)
	if err != nil {
		return nil, err
	}
	template, err := podTemplate(before)
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, fmt.Errorf("convert template of the history: %w", err)
	}
	with(fields, newer)
	return fields, nil
}

// podTemplate returns a template of the history as that of a ReplicaSet.
func podTemplate(template *inplace.Template) (*corev1.PodTemplateSpec, error) {
	raw, err := template.MarshalJSON()
	if err != nil {
		return nil, err
	}
	found := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, found); err != nil {
		return nil, fmt.Errorf("read template of the history: %w", err)
	}
	return found, nil
}

// patchTemplate replaces the template of a ReplicaSet, but for the label by which it
// selects its pods, if it still is as it was read.
func patchTemplate(ctx context.Context, c client.Writer, rs *appsv1.ReplicaSet, template, annotations map[string]any) error {
	fields := runtime.DeepCopyJSON(template)
	if err := setTemplateHash(fields, rs.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]); err != nil {
		return err
	}
	fields["$patch"] = "replace"
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": rs.UID, "resourceVersion": rs.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"template": fields},
	})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, (&replicaSet{ReplicaSet: rs}).reference(), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("write template of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return nil
}

func setTemplateHash(template map[string]any, hash string) error {
	return unstructured.SetNestedField(template, hash, "metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey)
}

// reference names a ReplicaSet for a write, whose answer goes into it.
func (rs *replicaSet) reference() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: rs.Namespace, Name: rs.Name}}
}

// createEmpty makes an empty ReplicaSet that is what the keeper was in the history.
func (w deployment) createEmpty(ctx context.Context, r *Reconciler, keeper *replicaSet, before map[string]any) error {
	hash := hashOf(keeper)
	if err := setTemplateHash(before, hash); err != nil {
		return err
	}
	selector := w.Spec.Selector.DeepCopy()
	metav1.AddLabelToSelector(selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name + "-" + hash, Namespace: w.Namespace,
			Annotations:     w.annotationsInHistory(keeper.previous()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Deployment, Deployment.groupVersionKind())},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), MinReadySeconds: w.Spec.MinReadySeconds, Selector: selector},
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before, &rs.Spec.Template); err != nil {
		return fmt.Errorf("read template of the history: %w", err)
	}
	rs.Labels = maps.Clone(rs.Spec.Template.Labels)
	obj, err := wholeReplicaSet(rs, before)
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return nil
}

// hashOf names what a promoted ReplicaSet had. No other controller makes the same name
// from it.
func hashOf(keeper *replicaSet) string {
	h := fnv.New32a()
	// Writes to a hash never fail.
	_, _ = h.Write([]byte(string(keeper.UID) + " " + keeper.previous().String()))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
