// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/config/defaults"
	manifests "github.com/insitu-dev/insitu/config/policies"
)

// The API server takes up policies when its watch shows them.
const (
	patience = 30 * time.Second
	pause    = 100 * time.Millisecond
)

// Install creates the policies of config/policies and config/defaults and their
// bindings, and returns when the API server acts by them.
func Install(ctx context.Context, c client.Client) error {
	if err := InstallDefaults(ctx, c); err != nil {
		return err
	}
	if err := create(ctx, c, manifests.Manifests); err != nil {
		return err
	}
	cases, err := Cases()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := awaitHold(ctx, c, cases[kind.name][0].Old); err != nil {
			return fmt.Errorf("wait until a %s is held: %w", kind.name, err)
		}
	}

	return nil
}

// InstallDefaults creates the policies of config/defaults and their bindings, and returns
// when the API server acts by them.
func InstallDefaults(ctx context.Context, c client.Client) error {
	if err := create(ctx, c, defaults.Manifests); err != nil {
		return err
	}
	for kind, strategy := range map[string]any{"CloneSet": map[string]any{}, "StatefulSet": map[string]any{"type": "RollingUpdate"}} {
		// The API server refuses objects until it has read their definitions for its
		// policies, which it does every five seconds.
		var refused error
		writes := func(ctx context.Context) (bool, error) {
			probe := probeOf(kind, strategy)
			refused = c.Create(ctx, probe, client.DryRunAll)
			_, found, _ := unstructured.NestedFieldNoCopy(probe.Object, "spec", "updateStrategy", "rollingUpdate")

			return found, nil
		}
		if err := wait.PollUntilContextTimeout(ctx, pause, patience, true, writes); err != nil {
			return fmt.Errorf("wait until defaults of a %s are written: %w", kind, errors.Join(err, refused))
		}
	}

	return nil
}

// probeOf returns a set with an update strategy.
func probeOf(kind string, strategy any) *unstructured.Unstructured {
	labels := map[string]any{"app": "is-there-a-policy"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "is-there-a-policy", "namespace": metav1.NamespaceDefault},
		"spec": map[string]any{
			"selector":       map[string]any{"matchLabels": labels},
			"updateStrategy": strategy,
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}},
			},
		},
	}}
}

// create creates the objects of all manifests.
func create(ctx context.Context, c client.Client, manifests embed.FS) error {
	files, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		objects, err := objectsIn(manifests, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, obj := range objects {
			if err := c.Create(ctx, obj); err != nil {
				return fmt.Errorf("install policy: %w", err)
			}
		}
	}

	return nil
}

// objectsIn returns the objects of a manifest.
func objectsIn(manifests embed.FS, file string) ([]*unstructured.Unstructured, error) {
	data, err := manifests.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
}

// awaitHold asks, by dry runs, for a hold of a workload that is deleted again.
func awaitHold(ctx context.Context, c client.Client, workload client.Object) error {
	workload.SetNamespace(metav1.NamespaceDefault)
	workload.SetName("is-there-a-policy")
	if err := c.Create(ctx, workload); err != nil {
		return err
	}
	held := func(ctx context.Context) (bool, error) {
		probe := workload.DeepCopyObject().(client.Object)
		probe.GetLabels()[native.HeldLabel] = "probe"
		err := c.Update(ctx, probe, client.DryRunAll)

		return probe.GetLabels()[native.HeldLabel] == native.Held, err
	}
	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, held)

	return errors.Join(err, c.Delete(ctx, workload))
}
