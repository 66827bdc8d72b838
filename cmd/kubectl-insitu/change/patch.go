// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MarshalJSON writes the value of an operation that has one, also where it is false, 0
// or empty.
func (o operation) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != "remove" {
		fields["value"] = o.Value
	}
	return json.Marshal(fields)
}

// difference returns the operations that make one value of another, both as JSON is
// decoded. Lists of the same length are compared item by item; so what is beside a change
// in an item stays, also if another user knows more of its fields than we do.
func difference(path string, before, after any) []operation {
	if old, ok := before.(map[string]any); ok {
		if wanted, ok := after.(map[string]any); ok {
			return differenceOfMaps(path, old, wanted)
		}
	}
	if old, ok := before.([]any); ok {
		if wanted, ok := after.([]any); ok && len(old) == len(wanted) {
			var operations []operation
			for i := range old {
				operations = append(operations, difference(path+"/"+strconv.Itoa(i), old[i], wanted[i])...)
			}
			return operations
		}
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return []operation{{"replace", path, after}}
}

func differenceOfMaps(path string, before, after map[string]any) []operation {
	all := map[string]any{}
	maps.Copy(all, before)
	maps.Copy(all, after)
	var operations []operation
	for _, key := range slices.Sorted(maps.Keys(all)) {
		old, was := before[key]
		wanted, is := after[key]
		field := path + "/" + escape(key)
		switch {
		case !was:
			operations = append(operations, operation{"add", field, wanted})
		case !is:
			operations = append(operations, operation{Op: "remove", Path: field})
		default:
			operations = append(operations, difference(field, old, wanted)...)
		}
	}
	return operations
}

// escape returns a key as part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
