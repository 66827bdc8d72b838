// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schemaProps = apiextensionsv1.JSONSchemaProps

// walk calls visit for the schema and everything in it, the parents first.
func walk(schema *schemaProps, visit func(*schemaProps)) {
	visit(schema)

	eachChild(schema, func(_ string, child *schemaProps) {
		walk(child, visit)
	})
}

// eachChild calls visit for the direct children of a schema: properties by
// their name, items as "[]" and the values of a map as "{}".
func eachChild(schema *schemaProps, visit func(name string, child *schemaProps)) {
	for name, property := range schema.Properties {
		visit(name, &property)
		schema.Properties[name] = property
	}

	if schema.Items != nil && schema.Items.Schema != nil {
		visit("[]", schema.Items.Schema)
	}

	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		visit("{}", schema.AdditionalProperties.Schema)
	}
}

// edit applies changes to the node at a path such as
// "template.spec.containers.[].name", in the words of eachChild.
func edit(schema *schemaProps, path string, changes ...change) error {
	if !applyAt(schema, path, changes) {
		return fmt.Errorf("find %q: the schema has no such field", path)
	}

	return nil
}

func applyAt(schema *schemaProps, path string, changes []change) bool {
	name, rest, more := strings.Cut(path, ".")
	found := false

	eachChild(schema, func(child string, node *schemaProps) {
		switch {
		case child != name:
		case more:
			found = applyAt(node, rest, changes)
		default:
			for _, change := range changes {
				change(node)
			}

			found = true
		}
	})

	return found
}

// dropDefaults drops the defaults of all fields but those that are keys of a
// list, which must be there for its items to be told apart (the protocol of a
// port). Any other default would make a template differ from what its user
// wrote.
func dropDefaults(schema *schemaProps, keys []string) {
	eachChild(schema, func(name string, child *schemaProps) {
		if !slices.Contains(keys, name) {
			child.Default = nil
		}

		if name == "[]" {
			dropDefaults(child, schema.XListMapKeys)
		} else {
			dropDefaults(child, nil)
		}
	})
}
