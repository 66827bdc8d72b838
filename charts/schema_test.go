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
		"several namespaces":         {set: "config.namespaces={shop,bank}", want: "config.namespaces: found 2: accepted is one namespace, or none for all"},
		"a port that needs root":     {set: "metrics.port=443", want: "at '/metrics/port': minimum: got 443, want 1,024"},
		"one port for two":           {set: "health.port=8443", want: "health.port: found 8443, which is metrics.port: accepted is another port"},
		"replicas without a leader":  {set: "config.leaderElection.enabled=false", want: "replicas: found more than 1 with config.leaderElection.enabled false"},
		"metrics that are off":       {set: "metrics.enabled=false,metrics.serviceMonitor.enabled=true", want: "metrics.serviceMonitor.enabled: found true with metrics.enabled or manager.enabled false"},
		"an interval without a unit": {set: "metrics.serviceMonitor.interval=30x", want: "at '/metrics/serviceMonitor/interval': '30x' does not match pattern"},
		"an unknown alert":           {set: "metrics.prometheusRule.disabled={InsituDown}", want: "at '/metrics/prometheusRule/disabled/0': value must be one of"},
		"an unknown scope":           {set: "rbac.scope=Namespaces", want: "at '/rbac/scope': value must be one of 'Cluster', 'Namespace'"},
		"a budget of everybody":      {set: "podDisruptionBudget.maxUnavailable=2", want: "podDisruptionBudget.maxUnavailable: found 2 with replicas 2, which protects nothing"},
		"a budget of no pods":        {set: "podDisruptionBudget.maxUnavailable=0", want: "at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1"},
		"a spread of nothing":        {set: "topologySpreadConstraints[0].topologyKey=rack", want: "at '/topologySpreadConstraints/0': missing properties 'labelSelector', 'maxSkew', 'whenUnsatisfiable'"},
		"an address without a mask":  {set: "networkPolicy.apiServer.cidrs={10.0.0.1}", want: "at '/networkPolicy/apiServer/cidrs/0': '10.0.0.1' does not match pattern"},
		"an unknown peer":            {set: "networkPolicy.metricsFrom[0].namespace=monitoring", want: "at '/networkPolicy/metricsFrom/0': additional properties 'namespace' not allowed"},
		"an account that is none":    {set: "manager.tenantAccounts={shop/insitu}", want: "at '/manager/tenantAccounts/0': 'shop/insitu' does not match pattern"},
		"secure metrics of a tenant": {set: "rbac.scope=Namespace", want: "metrics.secure: found true with rbac.scope Namespace: asking the API server who reads metrics takes rights in the whole cluster: accepted is metrics.secure false"},
		"a guard of a tenant":        {set: "rbac.scope=Namespace,metrics.secure=false,deletionGuard.enabled=true", want: "deletionGuard.enabled: found true with rbac.scope Namespace"},
		"tenants of a tenant":        {set: "rbac.scope=Namespace,metrics.secure=false,manager.tenantAccounts={a:b}", want: "manager.tenantAccounts: found some with rbac.scope Namespace"},
		"nothing at all":             {set: "rbac.scope=Namespace,metrics.secure=false,manager.enabled=false", want: "manager.enabled: found false with rbac.scope Namespace, which installs nothing but a manager"},
		"holds without a manager":    {set: "manager.enabled=false", want: "holdPolicies.namespaceSelector: found neither this nor config.namespaces with manager.enabled false"},
		"a guard against managers":   {set: "manager.enabled=false,holdPolicies.install=false,deletionGuard.enabled=true", want: "deletionGuard.enabled: found true with manager.enabled false and no manager.tenantAccounts"},
		"monitoring of no manager":   {set: "manager.enabled=false,holdPolicies.install=false,metrics.serviceMonitor.enabled=true", want: "metrics.serviceMonitor.enabled: found true"},
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
		return path == "leaderElection.resourceNamespace" || path == "scope" || strings.HasPrefix(path, "metrics") || strings.HasPrefix(path, "health")
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
