// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts_test renders the chart with the pinned Helm and looks at what
// comes out.
package charts_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// withoutCRDs keeps half a megabyte out of what is compared.
const withoutCRDs = "--set=crds.install=false"

// The pinned tools, see go.tools.mod. They are looked up once: that takes longer
// than running them.
var (
	helm      = lookUp("helm")
	kustomize = lookUp("kustomize")
)

// lookUp returns a function that returns the path of a pinned tool.
func lookUp(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		output, err := exec.Command("go", "tool", "-modfile=../go.tools.mod", "-n", name).Output()
		if err != nil {
			return "", fmt.Errorf("look up %s: %w", name, err)
		}

		return strings.TrimSpace(string(output)), nil
	})
}

// runTool runs a tool in the root of the repository and returns what it printed,
// on both streams if it failed.
func runTool(t *testing.T, tool func() (string, error), args ...string) (string, error) {
	t.Helper()
	path, err := tool()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = ".."
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String() + stderr.String(), err
	}

	return stdout.String(), nil
}

// template renders the chart as release insitu in namespace insitu-system.
func template(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"template", "insitu", "charts/insitu", "--namespace=insitu-system"}, flags...)

	return runTool(t, helm, args...)
}

// render returns the objects of the rendered chart.
func render(t *testing.T, flags ...string) objects {
	t.Helper()
	output, err := template(t, flags...)
	if err != nil {
		t.Fatalf("render chart: %v\n%s", err, output)
	}

	return decode(t, output)
}

// objects are the objects of a manifest.
type objects []*unstructured.Unstructured

func decode(t *testing.T, manifest string) objects {
	t.Helper()
	var all objects
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(obj.Object) > 0 {
			all = append(all, obj)
		}
	}
}

// find reads the one object of a kind and name into obj.
func (o objects) find(t *testing.T, kind, name string, obj any) {
	t.Helper()
	for _, candidate := range o {
		if candidate.GetKind() != kind || candidate.GetName() != name {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(candidate.Object, obj, true); err != nil {
			t.Fatalf("read %s %s: %v", kind, name, err)
		}

		return
	}
	t.Fatalf("find %s %s: it is not there", kind, name)
}

// ofKind returns the objects of some kinds.
func (o objects) ofKind(kinds ...string) objects {
	var found objects
	for _, obj := range o {
		for _, kind := range kinds {
			if obj.GetKind() == kind {
				found = append(found, obj)
			}
		}
	}

	return found
}

// decodeStrictly reads one document.
func decodeStrictly(t *testing.T, document string, into any) {
	t.Helper()
	if err := sigsyaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}
