// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// olderVersion is served beside the stored version, from the same schema.
const olderVersion = "v1alpha1"

// quantityPattern accepts what a Quantity can be read from, and nothing else.
// The pattern that controller-gen emits also accepts an exponent with a
// fraction, such as 1e1.5.
const quantityPattern = `^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`

// process turns the definition that controller-gen made of the stored version
// into the one we ship.
func process(crd *apiextensionsv1.CustomResourceDefinition) error {
	if len(crd.Spec.Versions) != 1 {
		return fmt.Errorf("found %d versions, expected the stored one alone", len(crd.Spec.Versions))
	}

	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema

	if err := refine(root, crd.Spec.Names.Kind); err != nil {
		return err
	}

	walk(root, boundIntegers)
	serveOlderVersion(crd)

	return nil
}

// serveOlderVersion serves the stored version under its older name, too. With
// one schema for both, the API server needs no conversion.
func serveOlderVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	older := crd.Spec.Versions[0].DeepCopy()
	older.Name = olderVersion
	older.Storage = false

	crd.Spec.Versions = append(crd.Spec.Versions, *older)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
}

// embed makes the schema of an embedded type small, and accept what a native
// workload accepts. The description of its root is ours and stays.
func embed(schema *schemaProps) {
	ours := schema.Description

	walk(schema, func(node *schemaProps) {
		// Descriptions are nine tenths of the size, and kubectl apply stores
		// the whole manifest in one annotation. kubectl explain pod has them.
		node.Description = ""
		acceptNumbers(node)
	})
	dropDefaults(schema, nil)

	schema.Description = ours
}

// acceptCreationTimestamp is for the "creationTimestamp: null" that tools write
// into every template. The API server drops a null where it knows the field,
// and refuses it where it does not.
func acceptCreationTimestamp(metadata *schemaProps) {
	metadata.Properties["creationTimestamp"] = schemaProps{Type: "string", Format: "date-time"}
}

// acceptNumbers makes a quantity accept an unquoted number with a fraction, as
// in "cpu: 0.5". Schemas have a type for "integer or string", but none that
// accepts any number too, so the type is left open and the types that are no
// quantity are excluded one by one: objects and lists by bounds that none can
// meet, booleans by value. Without that, one object with a list for a quantity
// could be stored, and no typed client could read the list it is in.
func acceptNumbers(node *schemaProps) {
	isQuantity := node.XIntOrString && node.Pattern != ""
	if !isQuantity {
		return
	}

	*node = schemaProps{
		Pattern:                quantityPattern,
		XPreserveUnknownFields: ptr.To(true),
		MinProperties:          ptr.To[int64](1),
		MaxProperties:          ptr.To[int64](0),
		MinItems:               ptr.To[int64](1),
		MaxItems:               ptr.To[int64](0),
		Not:                    &schemaProps{Enum: []apiextensionsv1.JSON{{Raw: []byte("true")}, {Raw: []byte("false")}}},
	}
}

// boundIntegers keeps integers within 32 bits: those of "integer or string",
// which have no format that says so, and those of format int32, which not every
// supported API server takes at its word. A number beyond would be stored, and
// no typed client could read the list that it is in.
func boundIntegers(node *schemaProps) {
	if !node.XIntOrString && node.Format != "int32" {
		return
	}

	if node.Minimum == nil {
		node.Minimum = ptr.To[float64](math.MinInt32)
	}

	if node.Maximum == nil {
		node.Maximum = ptr.To[float64](math.MaxInt32)
	}
}

// marshal returns the definition as YAML without the status, which only the
// API server writes.
func marshal(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	raw, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}

	fields := map[string]any{}
	if err := yaml.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}

	delete(fields, "status")

	return yaml.Marshal(fields)
}
