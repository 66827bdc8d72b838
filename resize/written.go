// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Written returns the fields of a pod that the operator wrote last, and when. The
// API server keeps account of that in the pod's managedFields, in the same write:
// a field that somebody else gives another value is not ours any more. So a resize
// that was made, and whose record was not written since the manager was killed in
// between, is known for what it is, and so is what a vertical autoscaler did.
func Written(pod *corev1.Pod) (sets.Set[Field], time.Time) {
	var fields sets.Set[Field]
	var at time.Time
	for i := range pod.ManagedFields {
		entry := &pod.ManagedFields[i]
		if !IsOwn(entry) {
			continue
		}
		owned := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		for field := range AmountsOf(&pod.Spec) {
			if _, found, _ := unstructured.NestedFieldNoCopy(owned, managedPath(field)...); found {
				if fields == nil {
					fields = sets.New[Field]()
				}
				fields.Insert(field)
			}
		}
		if entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return fields, at
}

// IsOwn reports whether an entry of managedFields tells of writes to pods/resize
// by the operator.
func IsOwn(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Subresource == Subresource && entry.FieldsV1 != nil
}

// managedPath returns where managedFields mentions a field.
func managedPath(field Field) []string {
	path := []string{"f:spec"}
	if field.Container != "" {
		list := "f:containers"
		if field.Sidecar {
			list = "f:initContainers"
		}
		name, _ := json.Marshal(map[string]string{"name": field.Container}) // text marshals
		path = append(path, list, "k:"+string(name))
	}
	return append(path, "f:resources", "f:"+field.list(), "f:"+string(field.Resource))
}
