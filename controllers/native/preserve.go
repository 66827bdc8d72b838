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

	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// preserve sees to it that another ReplicaSet has the template that the keeper had, and that
// none that is older than the keeper, or has pods, has the one that it has now: the
// Deployment would take the older one for its own, and recreate every pod, and an undo
// would find the same template in the revision before. The pods that a hold has made more
// go with the hold.
func (w deployment) preserve(ctx context.Context, r *Reconciler, s *scope) error {
	before := s.history.Get(s.keeper.previous().revision)
	if before == nil {
		return nil // another client deleted it: there is nothing to preserve
	}
	others, err := w.otherReplicaSets(ctx, r, s.keeper)
	if err != nil {
		return err
	}
	template, err := w.templateBefore(ctx, r, s.keeper, before.Template)
	if err != nil {
		return err
	}
	isPreserved := slices.ContainsFunc(others, func(rs *replicaSet) bool { return rs.template.Equal(before.Template) })
	for _, twin := range others {
		if s.isReleased() && isLive(twin.ReplicaSet) {
			continue // Kubernetes has gone on with it
		}
		if !twin.isOf(&s.keeper.Spec.Template) || isPreserved && compareAge(twin, s.keeper) > 0 && !isLive(twin.ReplicaSet) {
			continue
		}
		if err := w.labelPods(ctx, r, s, twin); err != nil {
			return err
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

// otherReplicaSets reads those that are not the keeper, with their templates, from the API
// server.
func (w deployment) otherReplicaSets(ctx context.Context, r *Reconciler, keeper *replicaSet) ([]*replicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read spec.selector of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	list := &appsv1.ReplicaSetList{}
	if err := r.live.List(ctx, list, client.InNamespace(w.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ReplicaSets of Deployment %s/%s: %w", w.Namespace, w.Name, err)
	}
	others := slices.DeleteFunc(list.Items, func(rs appsv1.ReplicaSet) bool {
		return rs.UID == keeper.UID || rs.DeletionTimestamp != nil || !metav1.IsControlledBy(&rs, w.Deployment)
	})
	found, err := replicaSets(others)
	slices.SortFunc(found, compareAge)
	return found, err
}

// giveTemplate makes a ReplicaSet what the keeper was in the history.
func (w deployment) giveTemplate(ctx context.Context, r *Reconciler, to, keeper *replicaSet, before map[string]any) error {
	annotations := replacing(to.Annotations, w.annotationsInHistory(keeper.previous()))
	return patchTemplate(ctx, r.client, to.ReplicaSet, before, annotations)
}

// labelPods has the pods of a ReplicaSet say what they were made from, before that has another
// template: where the hold begins again now, they may be the ones that stay.
func (w deployment) labelPods(ctx context.Context, r *Reconciler, s *scope, rs *replicaSet) error {
	revision := s.history.Find(rs.template)
	if !isLive(rs.ReplicaSet) || revision == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	list := &corev1.PodList{}
	if err := r.live.List(ctx, list, client.InNamespace(rs.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list pods of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if !metav1.IsControlledBy(pod, rs) || pod.DeletionTimestamp != nil || inplace.RevisionOf(pod) != "" {
			continue
		}
		label := map[string]any{"labels": map[string]any{appsv1.ControllerRevisionHashLabelKey: revision.Hash()}}
		if err := workloads.PatchMetadata(ctx, r.client, pod, workloads.PodReference(pod), label); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
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
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), MinReadySeconds: w.wished().Spec.MinReadySeconds, Selector: selector},
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
