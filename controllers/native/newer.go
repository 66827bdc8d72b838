// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A server may be newer than this program: templates then have fields that our types
// lose. A template is never written from a type alone.

// readWhole reads the template of an object as the API server has it, if the object
// still is as it was read. newer is what the types did not show of it.
func (r *Reconciler) readWhole(ctx context.Context, kind schema.GroupVersionKind, obj client.Object, shown *corev1.PodTemplateSpec) (whole, newer map[string]any, err error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		return nil, nil, fmt.Errorf("get %s %s/%s: %w", kind.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	if found.GetUID() != obj.GetUID() || found.GetResourceVersion() != obj.GetResourceVersion() {
		return nil, nil, apierrors.NewConflict(schema.GroupResource{Group: appsv1.GroupName, Resource: kind.Kind}, obj.GetName(), errors.New("it has changed"))
	}
	whole, _, err = unstructured.NestedMap(found.Object, "spec", "template")
	if err != nil {
		return nil, nil, fmt.Errorf("read template of %s %s/%s: %w", kind.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shown)
	if err != nil {
		return nil, nil, fmt.Errorf("convert template of %s %s/%s: %w", kind.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	newer, _ = without(whole, known).(map[string]any)
	return whole, newer, nil
}

// wholeReplicaSet returns a ReplicaSet that is to be created with a template. It has its
// type unless that loses something.
func wholeReplicaSet(rs *appsv1.ReplicaSet, template map[string]any) (client.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rs)
	if err != nil {
		return nil, fmt.Errorf("convert ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	known, _, err := unstructured.NestedMap(fields, "spec", "template")
	if err != nil || without(template, known) == nil {
		return rs, err
	}
	if err := unstructured.SetNestedMap(fields, template, "spec", "template"); err != nil {
		return nil, fmt.Errorf("write template of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	whole := &unstructured.Unstructured{Object: fields}
	whole.SetGroupVersionKind(replicaSetKind)
	return whole, nil
}

// without returns the fields of a value that another one does not have, whatever they
// say; nil if there are none. In lists, the place is kept.
func without(value, other any) any {
	switch typed := value.(type) {
	case map[string]any:
		others, _ := other.(map[string]any)
		left := map[string]any{}
		for key, field := range typed {
			if found, ok := others[key]; ok {
				field = without(field, found)
			}
			if field != nil {
				left[key] = field
			}
		}
		if len(left) > 0 {
			return left
		}
	case []any:
		others, _ := other.([]any)
		left, some := make([]any, len(typed)), false
		for i := range min(len(typed), len(others)) {
			left[i] = without(typed[i], others[i])
			some = some || left[i] != nil
		}
		if some {
			return left
		}
	}
	return nil
}

// with returns a value that has the fields that another one lacked, see without.
func with(value, fields any) any {
	switch typed := fields.(type) {
	case map[string]any:
		all, ok := value.(map[string]any)
		if !ok {
			return typed
		}
		for key, field := range typed {
			all[key] = with(all[key], field)
		}
		return all
	case []any:
		all, _ := value.([]any)
		for i := range min(len(all), len(typed)) {
			all[i] = with(all[i], typed[i])
		}
		return all
	case nil:
		return value
	default:
		return typed
	}
}

// differing returns the path of a field in which two values differ; empty if there is
// none.
func differing(a, b any, path string) string {
	if apiequality.Semantic.DeepEqual(a, b) {
		return ""
	}
	one, isOne := a.(map[string]any)
	other, isOther := b.(map[string]any)
	if !isOne && !isOther {
		return path
	}
	all := maps.Clone(one)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, other)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if found := differing(one[key], other[key], path+"."+key); found != "" {
			return found
		}
	}
	return cmp.Or(path, "spec")
}
