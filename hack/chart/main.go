// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command chart writes those parts of charts/insitu that have their source in
// config/: the CustomResourceDefinitions, the rules of the roles, the admission
// policies, the alerts and the Grafana board. The other templates have no other source
// and are written by hand; a test of the chart compares them with config/. It also writes
// docs/values.md, from the values of the chart and their schema.
//
// Run it from the root of the repository: go run ./hack/chart
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := generate(".", "."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// generate reads config/ below source and writes charts/insitu below target, and the
// alerts as an object beside their source.
func generate(source, target string) error {
	templates := filepath.Join(target, "charts", "insitu", "templates")
	if err := generateTemplates("definitions", filepath.Join(source, "config", "crd"), filepath.Join(templates, "crds"), crdTemplate); err != nil {
		return fmt.Errorf("generate CustomResourceDefinitions: %w", err)
	}
	if err := generateRoles(source, target, filepath.Join(templates, "_rules.tpl")); err != nil {
		return fmt.Errorf("generate rules: %w", err)
	}
	if err := generateTemplates("policies", filepath.Join(source, "config", "policies"), filepath.Join(templates, "policies"), policyTemplate); err != nil {
		return fmt.Errorf("generate policies: %w", err)
	}
	if err := generateMonitoring(source, target); err != nil {
		return fmt.Errorf("generate monitoring: %w", err)
	}
	if err := generateValues(filepath.Join(source, "charts", "insitu"), filepath.Join(target, "docs", "values.md")); err != nil {
		return fmt.Errorf("generate values: %w", err)
	}

	return nil
}

// generateRoles writes the roles for managers of some namespaces, and the rules of all
// roles for the chart.
func generateRoles(source, target, rules string) error {
	files, err := filepath.Glob(filepath.Join(source, "config", "rbac", "*.yaml"))
	if err != nil {
		return err
	}
	namespaced, err := generateNamespaced(files, target)
	if err != nil {
		return err
	}
	return generateRules(slices.Concat(files, namespaced), rules)
}

// writeFile writes a file and the folders above it.
func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	return os.WriteFile(path, []byte(content), 0o644)
}
