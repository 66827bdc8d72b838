// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/config/options"
)

// OptionsObjects returns the policy of config/options and its binding.
func OptionsObjects() ([]*unstructured.Unstructured, error) { return decodeAll(options.Manifest) }

// OptionsCase is one write of labels and annotations.
type OptionsCase struct {
	Name string `json:"name"`
	// Kind is that of the workload.
	Kind string `json:"kind"`
	// Manager is the field manager of the write.
	Manager string `json:"manager"`
	// Old is the metadata before, nil for a create. Write is a merge patch on it.
	Old   json.RawMessage `json:"old"`
	Write json.RawMessage `json:"write"`
	// Template says that the write has a new template, too.
	Template bool `json:"template"`
	// Refused is part of what the user is told; empty if the write is accepted.
	Refused string `json:"refused"`
}

// OptionsCases returns what is written, and what is refused of it.
func OptionsCases() ([]OptionsCase, error) {
	var cases []OptionsCase
	err := read("options.yaml", &cases)

	return cases, err
}

// Objects returns the workload before the write, without opt-in if the case says none, nil
// for a create; and as it is written.
func (c OptionsCase) Objects() (before, written client.Object, err error) {
	before, err = c.base()
	if err != nil {
		return nil, nil, err
	}
	if c.Old != nil {
		if err := mergeInto(before, metadata(c.Old)); err != nil {
			return nil, nil, err
		}
	}
	written, _ = before.DeepCopyObject().(client.Object)
	if err := mergeInto(written, metadata(c.Write)); err != nil {
		return nil, nil, err
	}
	if c.Template {
		err = mergeInto(written, json.RawMessage(`{"spec":{"template":{"metadata":{"annotations":{"example.io/changed":"again"}}}}}`))
	}
	if c.Old == nil {
		before = nil
	}

	return before, written, err
}

// base returns a workload of the kind, without labels.
func (c OptionsCase) base() (client.Object, error) {
	var bases map[string]json.RawMessage
	if err := read("bases.yaml", &bases); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if kind.name != c.Kind && (c.Kind != "" || kind.name != "Deployment") {
			continue
		}
		obj := kind.empty()
		err := json.Unmarshal(bases[kind.name], obj)
		obj.SetLabels(nil)

		return obj, err
	}

	return nil, fmt.Errorf("case %q: found kind %q", c.Name, c.Kind)
}

func metadata(patch json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"metadata":` + string(patch) + `}`)
}
