// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The fields that rows of changes.yaml are about; and those that a template cannot have.
var (
	toldOfPods       = sets.New("containers", "initContainers", "resources", "ephemeralContainers", "tolerations")
	toldOfContainers = sets.New("name", "image", "resources")
)

// fixedFields returns the rows of all other fields that the API of this build knows, one
// for the pod and one for its containers. It is an error if they are not all judged
// alike: such a field needs a row of its own.
func fixedFields() ([]change, error) {
	rows := []change{}
	for _, of := range []struct {
		words, path string
		names       []string
	}{
		{"any other field of `spec`", "/spec/", fieldsOf(reflect.TypeFor[corev1.PodSpec](), toldOfPods)},
		{"any other field of a container", "/spec/containers/0/", fieldsOf(reflect.TypeFor[corev1.Container](), toldOfContainers)},
	} {
		var all []change
		for _, name := range of.names {
			added, err := adding(of.path + name)
			if err != nil {
				return nil, err
			}
			all = append(all, change{Change: name, Patch: added})
		}
		if err := judgedAlike(all); err != nil {
			return nil, err
		}
		rows = append(rows, change{Change: of.words + ": " + code(strings.Join(of.names, "`, `")), Patch: all[0].Patch})
	}

	return rows, nil
}

// adding returns a patch that adds something at a path, or replaces what is there. The
// templates are compared as they are written, so it does not matter what it is.
func adding(path string) (json.RawMessage, error) {
	return json.Marshal([]map[string]any{{"op": "add", "path": path, "value": nil}, {"op": "replace", "path": path, "value": "other"}})
}

func judgedAlike(changes []change) error {
	first, err := changes[0].judge()
	if err != nil {
		return err
	}
	for _, c := range changes[1:] {
		found, err := c.judge()
		if err != nil {
			return fmt.Errorf("judge the change of %s: %w", c.Change, err)
		}
		if found != first {
			return fmt.Errorf("field %s is judged otherwise than %s: found %v and %v, want a row of its own in changes.yaml",
				c.Change, changes[0].Change, found, first)
		}
	}

	return nil
}

// fieldsOf returns the names of a type's fields in the API, sorted, without some.
func fieldsOf(t reflect.Type, without sets.Set[string]) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !without.Has(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	return names
}
