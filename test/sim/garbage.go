// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collectGarbage deletes what has owners of which none is there any more, and tells of it.
func (s *server) collectGarbage(tell func(client.Object)) {
	if s.clock.Now().Before(s.collectsAt) {
		return
	}
	owners := map[types.UID]bool{}
	for _, obj := range s.objects {
		owners[obj.GetUID()] = true
	}
	for _, key := range s.keys() {
		references := s.objects[key].GetOwnerReferences()
		if len(references) > 0 && !slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return owners[r.UID] }) {
			tell(s.objects[key])
			_ = s.delete(key, nil) // it is there: it was just seen
		}
	}
}

// keys returns what there is, in an order that is the same in every run.
func (s *server) keys() []objectKey {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// disown removes an owner from an object.
func (s *server) disown(key objectKey, owner types.UID) {
	held := s.objects[key]
	references := held.GetOwnerReferences()
	if !slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return r.UID == owner }) {
		return
	}
	obj := held.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
	s.store(key, obj)
}
