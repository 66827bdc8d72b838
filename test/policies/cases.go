// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies says what the admission policies of config/policies do, as a
// table of writes, and installs them in an API server for tests.
package policies

import (
	"embed"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var tables embed.FS

// Case is one write of an object, and what the policies make of it.
type Case struct {
	// Name is unique among the cases of a kind.
	Name string
	// Old is stored, New is written. Both have no name and no namespace.
	Old, New client.Object
	// Want is stored afterwards, unless the write is refused.
	Want client.Object
	// Refused is what the API server says of the write; empty if it accepts it.
	Refused string
}

// kinds are the kinds of workloads, with the table of each.
var kinds = []struct {
	name, table string
	empty       func() client.Object
}{
	{"Deployment", "deployments.yaml", func() client.Object { return &appsv1.Deployment{} }},
	{"StatefulSet", "statefulsets.yaml", func() client.Object { return &appsv1.StatefulSet{} }},
	{"DaemonSet", "daemonsets.yaml", func() client.Object { return &appsv1.DaemonSet{} }},
}

// row is a case as it is written down: merge patches, each on the result of the
// one before.
type row struct {
	Name    string          `json:"name"`
	Old     json.RawMessage `json:"old"`
	Write   json.RawMessage `json:"write"`
	Want    json.RawMessage `json:"want"`
	Refused string          `json:"refused"`
}

// Cases returns all cases by the kind of their objects.
func Cases() (map[string][]Case, error) {
	var bases map[string]json.RawMessage
	if err := read("bases.yaml", &bases); err != nil {
		return nil, err
	}
	cases := map[string][]Case{}
	for _, kind := range kinds {
		var table struct {
			Fragments map[string]any `json:"fragments"`
			Cases     []row          `json:"cases"`
		}
		if err := read(kind.table, &table); err != nil {
			return nil, err
		}
		for _, r := range table.Cases {
			c, err := r.on(bases[kind.name], kind.empty)
			if err != nil {
				return nil, fmt.Errorf("%s: case %q: %w", kind.table, r.Name, err)
			}
			cases[kind.name] = append(cases[kind.name], c)
		}
	}

	return cases, nil
}

func read(file string, into any) error {
	data, err := tables.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read cases: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}

	return nil
}

// on makes the objects of a case.
func (r row) on(base json.RawMessage, empty func() client.Object) (Case, error) {
	c := Case{Name: r.Name, Old: empty(), New: empty(), Want: empty(), Refused: r.Refused}
	document := base
	for _, step := range []struct {
		patch json.RawMessage
		into  client.Object
	}{{r.Old, c.Old}, {r.Write, c.New}, {r.Want, c.Want}} {
		if len(step.patch) > 0 {
			merged, err := jsonpatch.MergePatch(document, step.patch)
			if err != nil {
				return Case{}, fmt.Errorf("merge: %w", err)
			}
			document = merged
		}
		if err := yaml.UnmarshalStrict(document, step.into); err != nil {
			return Case{}, fmt.Errorf("decode: %w", err)
		}
	}

	return c, nil
}
