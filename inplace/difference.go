// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// difference is one place where two JSON values differ.
type difference struct {
	// path names the field as kubectl would, with the items of named lists by
	// their name: spec.containers[main].env[LOG_LEVEL].value.
	path string
	// what says in words how the two differ there, e.g. "was added".
	what string
}

// firstDifference returns the first difference between two values in the order
// of their field names, or nil if they are equal.
func firstDifference(from, to any) *difference {
	return differenceAt("", from, to)
}

func differenceAt(path string, from, to any) *difference {
	switch typedFrom := from.(type) {
	case map[string]any:
		if typedTo, ok := to.(map[string]any); ok {
			return mapDifference(path, typedFrom, typedTo)
		}
	case []any:
		if typedTo, ok := to.([]any); ok {
			return listDifference(path, typedFrom, typedTo)
		}
	}
	if reflect.DeepEqual(from, to) {
		return nil
	}
	return &difference{path: path, what: "was changed"}
}

func mapDifference(path string, from, to map[string]any) *difference {
	keys := slices.Sorted(maps.Keys(from))
	for key := range to {
		if _, ok := from[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if d := entryDifference(join(path, key), from, to, key); d != nil {
			return d
		}
	}
	return nil
}

func entryDifference(path string, from, to map[string]any, key string) *difference {
	valueFrom, inFrom := from[key]
	valueTo, inTo := to[key]
	switch {
	case !inFrom:
		if standard, ok := defaultAt(path, key); ok {
			return &difference{path: path, what: fmt.Sprintf("was changed from %v, the default, to %v", standard, valueTo)}
		}
		return &difference{path: path, what: "was added"}
	case !inTo:
		if standard, ok := defaultAt(path, key); ok {
			return &difference{path: path, what: fmt.Sprintf("was changed from %v to %v, the default", valueFrom, standard)}
		}
		return &difference{path: path, what: "was removed"}
	default:
		return differenceAt(path, valueFrom, valueTo)
	}
}

// defaultAt returns what pods have where the field at a path, which ends with key, is not
// written.
func defaultAt(path, key string) (any, bool) {
	holder := strings.TrimSuffix(path, "."+key)
	if strings.HasSuffix(holder, "]") {
		holder = holder[:strings.LastIndex(holder, "[")]
	}
	holder = holder[strings.LastIndex(holder, ".")+1:]
	standard, ok := defaults[holder][key]
	return standard, ok
}

// listDifference compares lists item by item. Where every item has a name of
// its own, an item is compared with its namesake.
func listDifference(path string, from, to []any) *difference {
	namesFrom, namedFrom := itemNames(from)
	namesTo, namedTo := itemNames(to)
	if namedFrom && namedTo {
		return namedListDifference(path, namedList{namesFrom, from}, namedList{namesTo, to})
	}
	for i := range min(len(from), len(to)) {
		if d := differenceAt(fmt.Sprintf("%s[%d]", path, i), from[i], to[i]); d != nil {
			return d
		}
	}
	if len(from) != len(to) {
		return &difference{path: path, what: fmt.Sprintf("has %d items instead of %d", len(to), len(from))}
	}
	return nil
}

type namedList struct {
	names []string
	items []any
}

func namedListDifference(path string, from, to namedList) *difference {
	for i, name := range from.names {
		at := fmt.Sprintf("%s[%s]", path, name)
		j := slices.Index(to.names, name)
		if j < 0 {
			return &difference{path: at, what: "was removed"}
		}
		if d := differenceAt(at, from.items[i], to.items[j]); d != nil {
			return d
		}
	}
	for _, name := range to.names {
		if !slices.Contains(from.names, name) {
			return &difference{path: fmt.Sprintf("%s[%s]", path, name), what: "was added"}
		}
	}
	if !slices.Equal(from.names, to.names) {
		return &difference{path: path, what: "was put in another order"}
	}
	return nil
}

// itemNames returns the names of the items, and whether each item has a name of
// its own.
func itemNames(items []any) ([]string, bool) {
	names := make([]string, 0, len(items))
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		name, ok := fields["name"].(string)
		if !ok || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
