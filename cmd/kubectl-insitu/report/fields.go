// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Changes returns the fields in which two values differ, both as JSON is decoded, one line
// each: spec.replicas: 3 -> 5. Items of lists that have names are told by those.
func Changes(path string, before, after any) []string {
	old, wasMap := before.(map[string]any)
	wanted, isMap := after.(map[string]any)
	if wasMap && isMap {
		return changesOfMaps(path, old, wanted)
	}
	oldItems, wasNamed := byName(before)
	wantedItems, isNamed := byName(after)
	if wasNamed && isNamed {
		return changesOfItems(path, oldItems, wantedItems)
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s -> %s", path, short(before), short(after))}
}

func changesOfMaps(path string, before, after map[string]any) []string {
	var changes []string
	for _, key := range keysOf(before, after) {
		field := key
		if path != "" {
			field = path + "." + key
		}
		changes = append(changes, Changes(field, before[key], after[key])...)
	}
	return changes
}

func changesOfItems(path string, before, after map[string]any) []string {
	var changes []string
	for _, name := range keysOf(before, after) {
		changes = append(changes, Changes(path+"["+name+"]", before[name], after[name])...)
	}
	return changes
}

func keysOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// byName returns the items of a list by their names; false if it is none, or they have
// none.
func byName(value any) (map[string]any, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	items := map[string]any{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, ok := fields["name"].(string)
		if metadata, isObject := fields["metadata"].(map[string]any); !ok && isObject {
			name, ok = metadata["name"].(string)
		}
		if !ok {
			return nil, false
		}
		items[name] = item
	}
	return items, len(items) == len(list)
}

// short says a value in a few words.
func short(value any) string {
	const most = 80
	switch typed := value.(type) {
	case nil:
		return "(none)"
	case string:
		return strconv.Quote(typed)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(raw) > most {
		return string(raw[:most]) + "..."
	}
	return string(raw)
}
