// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// snapshot reads each kind of a namespace once, with one list, and answers from that as a
// cache with the indexes of package podcache does.
type snapshot struct {
	client.Client

	mutex sync.Mutex
	lists map[listKey][]runtime.Object
}

type listKey struct {
	kind      schema.GroupVersionKind
	namespace string
}

func newSnapshot(c client.Client) *snapshot {
	return &snapshot{Client: c, lists: map[listKey][]runtime.Object{}}
}

// isListed reports whether an object is of a kind of which a workload has many: those are
// read with one list, also where one object is asked for.
func isListed(object client.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision, *appsv1.ReplicaSet, *discoveryv1.EndpointSlice:
		return true
	default:
		return false
	}
}

// Get implements client.Reader.
func (s *snapshot) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if !isListed(object) {
		return s.Client.Get(ctx, key, object, options...)
	}
	kind, err := apiutil.GVKForObject(object, s.Scheme())
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	all, err := s.list(ctx, listKey{kind, key.Namespace})
	if err != nil {
		return err
	}
	for _, found := range all {
		if named, ok := found.(client.Object); ok && named.GetName() == key.Name {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
			return nil
		}
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return apierrors.NewNotFound(resource.GroupResource(), key.Name)
}

// List implements client.Reader.
func (s *snapshot) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	kind, err := itemKind(list, s.Scheme())
	if err != nil {
		return err
	}
	item, err := s.Scheme().New(kind)
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	if object, ok := item.(client.Object); !ok || !isListed(object) {
		return s.Client.List(ctx, list, options...)
	}
	all, err := s.list(ctx, listKey{kind, asked.Namespace})
	if err != nil {
		return err
	}
	var found []runtime.Object
	for _, item := range all {
		if matches(item, asked) {
			found = append(found, item.DeepCopyObject()) // the caller may change it
		}
	}
	if err := meta.SetList(list, found); err != nil {
		return fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	return nil
}

func itemKind(list client.ObjectList, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return kind, fmt.Errorf("list %T: %w", list, err)
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	return kind, nil
}

// list returns all objects of a kind in a namespace.
func (s *snapshot) list(ctx context.Context, key listKey) ([]runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if known, ok := s.lists[key]; ok {
		return known, nil
	}
	object, err := s.Scheme().New(key.kind.GroupVersion().WithKind(key.kind.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", key.kind.Kind, err)
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("list %s: %T is no list", key.kind.Kind, object)
	}
	if err := s.Client.List(ctx, list, client.InNamespace(key.namespace)); err != nil {
		return nil, err
	}
	found, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", key.kind.Kind, err)
	}
	s.lists[key] = found
	return found, nil
}

// matches reports whether an object has the labels and the values of indexes that are
// asked for.
func matches(item runtime.Object, asked *client.ListOptions) bool {
	object, ok := item.(client.Object)
	if !ok {
		return false
	}
	if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if asked.FieldSelector == nil {
		return true
	}
	return !slices.ContainsFunc(asked.FieldSelector.Requirements(), func(wanted fields.Requirement) bool {
		return !slices.Contains(indexed(object, wanted.Field), wanted.Value)
	})
}

// indexed returns the values that an index has of an object.
func indexed(object client.Object, field string) []string {
	for _, index := range podcache.Indexes() {
		if index.Field == field && reflect.TypeOf(index.Object) == reflect.TypeOf(object) {
			return index.Values(object)
		}
	}
	return nil
}
