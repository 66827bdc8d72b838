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
	"strings"
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
		changes = append(changes, Changes(fieldOf(path, key), before[key], after[key])...)
	}
	return changes
}

// fieldOf names a field of a map. Keys with dots, as of annotations, are put in brackets.
func fieldOf(path, key string) string {
	switch {
	case strings.Contains(key, "."):
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
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
	var said string
	switch typed := value.(type) {
	case nil:
		return "(none)"
	case string:
		said = strconv.Quote(typed)
	default:
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		said = string(raw)
	}
	if runes := []rune(said); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return said
}
