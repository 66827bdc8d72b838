// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies says what the admission policies of config/policies do, as a
// table of writes, and installs them in an API server for tests.
package policies

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
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
	// Manager is the field manager of the write; empty if it says none.
	Manager string
	// Webhook is what webhooks make of the object, after all policies had it once; nil if
	// there is none.
	Webhook func(client.Object) error
	// Spoilt says that the annotations of Old are not as policies write them.
	Spoilt bool
	// Gate is a feature gate of the API server without which New is not accepted; empty
	// if none is needed.
	Gate string
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
	Manager string          `json:"manager"`
	Gate    string          `json:"gate"`
	Spoilt  bool            `json:"spoilt"`
	Write   json.RawMessage `json:"write"`
	Webhook json.RawMessage `json:"webhook"`
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
	c := Case{Name: r.Name, Old: empty(), New: empty(), Manager: r.Manager, Gate: r.Gate, Spoilt: r.Spoilt, Want: empty(), Refused: r.Refused}
	if len(r.Webhook) > 0 {
		c.Webhook = func(obj client.Object) error { return mergeInto(obj, r.Webhook) }
	}
	document := base
	for _, step := range []struct {
		patch json.RawMessage
		into  client.Object
	}{{r.Old, c.Old}, {r.Write, c.New}, {r.Webhook, empty()}, {r.Want, c.Want}} {
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

// mergeInto applies a merge patch to an object.
func mergeInto(obj client.Object, patch json.RawMessage) error {
	document, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	merged, err := jsonpatch.MergePatch(document, patch)
	if err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	value := reflect.ValueOf(obj).Elem()
	value.SetZero()

	return json.Unmarshal(merged, obj)
}

// Create creates a workload, and writes the status that it has: no workload without pods
// is held.
func Create(ctx context.Context, c client.Client, workload client.Object) error {
	described, isObject := workload.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("create %s: it is a %T", workload.GetName(), workload)
	}
	if err := c.Create(ctx, workload); err != nil {
		return err
	}
	described.SetName(workload.GetName())
	described.SetUID(workload.GetUID())
	described.SetResourceVersion(workload.GetResourceVersion())
	unobserve(described)
	if err := c.Status().Update(ctx, described); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	workload.SetResourceVersion(described.GetResourceVersion())

	return nil
}

// unobserve makes a status one of a controller that has not seen the object yet, of which no
// policy makes another.
func unobserve(workload client.Object) {
	switch typed := workload.(type) {
	case *appsv1.Deployment:
		typed.Status.ObservedGeneration = 0
	case *appsv1.StatefulSet:
		typed.Status.ObservedGeneration = 0
	case *appsv1.DaemonSet:
		typed.Status.ObservedGeneration = 0
	}
}

// GivePods writes into the status of a workload of Kubernetes that it has pods, all of its
// template, as its controller does where there is one.
func GivePods(ctx context.Context, c client.Client, workload client.Object) error {
	switch typed := workload.(type) {
	case *appsv1.Deployment:
		n := ptr.Deref(typed.Spec.Replicas, 1)
		typed.Status = appsv1.DeploymentStatus{ObservedGeneration: typed.Generation, Replicas: n, UpdatedReplicas: n}
	case *appsv1.StatefulSet:
		n := ptr.Deref(typed.Spec.Replicas, 1)
		typed.Status = appsv1.StatefulSetStatus{ObservedGeneration: typed.Generation, Replicas: n, UpdatedReplicas: n}
	case *appsv1.DaemonSet:
		typed.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: typed.Generation, CurrentNumberScheduled: 1, DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1,
		}
	default:
		return nil
	}

	return c.Status().Update(ctx, workload)
}
