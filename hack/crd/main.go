// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command crd writes the CustomResourceDefinitions of config/crd. Run it in the
// root of the repository:
//
//	go run ./hack/crd
//
// It runs controller-gen over the Go types and then makes the result small
// enough for kubectl apply, and as lenient with pod templates as the API server
// is with native workloads; process.go says how.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const outputDir = "config/crd"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "crd:", err)
		os.Exit(1)
	}
}

func run() error {
	raw, err := generate()
	if err != nil {
		return err
	}

	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		if err := writeManifest(document); err != nil {
			return err
		}
	}

	return nil
}

// generate returns what controller-gen makes of the stored version, as YAML
// documents.
func generate() ([]byte, error) {
	cmd := exec.Command("go", "tool", "-modfile=go.tools.mod", "controller-gen",
		"crd:generateEmbeddedObjectMeta=true", "paths=./apis/apps/v1beta1", "output:crd:stdout")
	cmd.Stderr = os.Stderr

	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run controller-gen: %w", err)
	}

	return raw, nil
}

// writeManifest processes one definition and writes it under the file name that
// controller-gen would give it.
func writeManifest(document []byte) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, crd); err != nil {
		return fmt.Errorf("read definition: %w", err)
	}

	if err := process(crd); err != nil {
		return fmt.Errorf("process %s: %w", crd.Name, err)
	}

	out, err := marshal(crd)
	if err != nil {
		return fmt.Errorf("write %s: %w", crd.Name, err)
	}

	path := filepath.Join(outputDir, crd.Spec.Group+"_"+crd.Spec.Names.Plural+".yaml")
	if err := os.WriteFile(path, out, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", crd.Name, err)
	}

	return nil
}
