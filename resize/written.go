// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Written returns the fields of a pod that the operator wrote last, and when. The
// API server keeps account of that in the pod's managedFields, in the same write:
// a field that another client gives another value is not ours any more. So a resize
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
		owned := ownedFields{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		if fields == nil {
			fields = sets.New[Field]()
		}
		owned.Spec.collect(fields)
		for field := range fields {
			if _, there := amountOf(&pod.Spec, field); !there {
				fields.Delete(field)
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

// ownedFields is what an entry of managedFields says of sizes.
type ownedFields struct {
	Spec ownedSpec `json:"f:spec"`
}

type ownedSpec struct {
	ownedSizes
	Containers     map[string]ownedSizes `json:"f:containers"`
	InitContainers map[string]ownedSizes `json:"f:initContainers"`
}

type ownedSizes struct {
	Resources struct {
		Requests ownedNames `json:"f:requests"`
		Limits   ownedNames `json:"f:limits"`
	} `json:"f:resources"`
}

type ownedNames struct {
	CPU    *struct{} `json:"f:cpu"`
	Memory *struct{} `json:"f:memory"`
}

// collect adds the fields that are owned to a set.
func (s ownedSpec) collect(fields sets.Set[Field]) {
	s.ownedSizes.collect(Field{}, fields)
	for key, sizes := range s.Containers {
		sizes.collect(Field{Container: nameIn(key)}, fields)
	}
	for key, sizes := range s.InitContainers {
		sizes.collect(Field{Container: nameIn(key), Sidecar: true}, fields)
	}
}

func (s ownedSizes) collect(of Field, fields sets.Set[Field]) {
	for _, list := range []struct {
		limit bool
		names ownedNames
	}{{false, s.Resources.Requests}, {true, s.Resources.Limits}} {
		of.Limit = list.limit
		if list.names.CPU != nil {
			of.Resource = corev1.ResourceCPU
			fields.Insert(of)
		}
		if list.names.Memory != nil {
			of.Resource = corev1.ResourceMemory
			fields.Insert(of)
		}
	}
}

// nameIn returns the name of a container in the key that managedFields has for it:
// k:{"name":"main"}. It is empty for what is no such key.
func nameIn(key string) string {
	named := struct {
		Name string `json:"name"`
	}{}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &named); err != nil {
		return ""
	}
	return named.Name
}
