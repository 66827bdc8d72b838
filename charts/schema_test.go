// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

func TestValuesAreRefused(t *testing.T) {
	tests := map[string]struct {
		set, want string
	}{
		"an unknown value":           {set: "replica=3", want: "additional properties 'replica' not allowed"},
		"an unknown nested value":    {set: "image.name=x", want: "at '/image': additional properties 'name' not allowed"},
		"an unknown setting":         {set: "config.leaderElection.enable=true", want: "at '/config/leaderElection': additional properties 'enable' not allowed"},
		"what the chart sets itself": {set: "config.metrics.bindAddress=:1", want: "at '/config': additional properties 'metrics' not allowed"},
		"a string for a number":      {set: "replicas=two", want: "at '/replicas': got string, want integer"},
		"a negative number":          {set: "replicas=-1", want: "at '/replicas': minimum: got -1, want 0"},
		"a string for a bool":        {set: "crds.install=maybe", want: "at '/crds/install': got string, want boolean"},
		"an unknown pull policy":     {set: "image.pullPolicy=Sometimes", want: "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		"a digest that is none":      {set: "image.digest=sha256:12", want: "at '/image/digest': 'sha256:12' does not match pattern"},
		"a log format":               {set: "config.logging.format=xml", want: "at '/config/logging/format': value must be one of 'json', 'text'"},
		"a duration without a unit":  {set: "config.gracefulShutdownTimeout=30x", want: "at '/config/gracefulShutdownTimeout'"},
		"a namespace in capitals":    {set: "config.namespaces[0]=Shop", want: "at '/config/namespaces/0': 'Shop' does not match pattern"},
		"a port that needs root":     {set: "metrics.port=443", want: "at '/metrics/port': minimum: got 443, want 1,024"},
		"one port for two":           {set: "health.port=8443", want: "health.port: found 8443, which is metrics.port: accepted is another port"},
		"replicas without a leader":  {set: "config.leaderElection.enabled=false", want: "replicas: found more than 1 with config.leaderElection.enabled false"},
		"metrics of nobody":          {set: "metrics.enabled=false,metrics.serviceMonitor.enabled=true", want: "metrics.serviceMonitor.enabled: found true with metrics.enabled false"},
		"an interval without a unit": {set: "metrics.serviceMonitor.interval=30x", want: "at '/metrics/serviceMonitor/interval': '30x' does not match pattern"},
		"an unknown alert":           {set: "metrics.prometheusRule.disabled={InsituDown}", want: "at '/metrics/prometheusRule/disabled/0': value must be one of"},
		"a useless certificate":      {set: "metrics.secure=false,metrics.certSecret=tls", want: "metrics.certSecret: found a certificate with metrics.secure false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			output, err := template(t, withoutCRDs, "--set="+test.set)

			g.Expect(err).To(HaveOccurred())
			g.Expect(output).To(ContainSubstring(test.want))
		})
	}
}

// node is a part of a JSON schema.
type node struct {
	Properties           map[string]node `json:"properties"`
	AdditionalProperties any             `json:"additionalProperties"`
	Items                struct {
		Enum []string `json:"enum"`
	} `json:"items"`
}

func schema(t *testing.T) node {
	t.Helper()
	var root node
	if err := json.Unmarshal([]byte(readFile(t, "insitu/values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}

	return root
}

// TestSchemaKnowsTheConfiguration compares the schema of the value config with
// the Go type that the manager reads.
func TestSchemaKnowsTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	want := fieldsOf(reflect.TypeFor[configv1alpha1.InsituConfiguration](), "")
	// These are decided by the chart.
	want = slices.DeleteFunc(want, func(path string) bool {
		return path == "leaderElection.resourceNamespace" || strings.HasPrefix(path, "metrics") || strings.HasPrefix(path, "health")
	})

	g.Expect(propertiesOf(schema(t).Properties["config"], "")).To(ConsistOf(want))
}

// TestSchemaKnowsTheValues compares the schema with values.yaml.
func TestSchemaKnowsTheValues(t *testing.T) {
	g := NewWithT(t)
	var values map[string]any
	g.Expect(yaml.UnmarshalStrict([]byte(readFile(t, "insitu/values.yaml")), &values)).To(Succeed())
	known := slices.Collect(maps.Keys(schema(t).Properties))

	g.Expect(slices.Collect(maps.Keys(values))).To(ConsistOf(slices.DeleteFunc(known, func(name string) bool { return name == "global" })))
}

// propertiesOf returns the paths of all properties that have none below them.
func propertiesOf(n node, path string) []string {
	if len(n.Properties) == 0 {
		return []string{path}
	}
	var paths []string
	for name, property := range n.Properties {
		paths = append(paths, propertiesOf(property, strings.TrimPrefix(path+"."+name, "."))...)
	}

	return paths
}

// fieldsOf returns the JSON paths of all fields that are no structs of the
// configuration.
func fieldsOf(structure reflect.Type, path string) []string {
	var paths []string
	for f := range structure.Fields() {
		if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		full := strings.TrimPrefix(path+"."+name, ".")
		if f.Type.Kind() == reflect.Struct {
			paths = append(paths, fieldsOf(f.Type, full)...)
			continue
		}
		paths = append(paths, full)
	}

	return paths
}
