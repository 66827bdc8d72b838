// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// notes returns what Helm prints after an installation as release insitu in namespace
// insitu-system. It asks no API server, so there are no hold policies; those are in the
// test of charts/install.
func notes(t *testing.T, flags ...string) string {
	t.Helper()
	args := append([]string{"install", "insitu", "charts/insitu", "--dry-run=client", "--namespace=insitu-system"}, flags...)
	output, err := runTool(t, helm, args...)
	if err != nil {
		t.Fatalf("install chart: %v\n%s", err, output)
	}
	_, found, _ := strings.Cut(output, "\nNOTES:\n")

	return found
}

func TestNotes(t *testing.T) {
	const metrics = "kubectl create clusterrolebinding insitu-metrics --clusterrole=insitu-metrics-reader"
	const definitions = "The CustomResourceDefinitions were not installed (crds.install is false)."
	const tenant = "kubectl create rolebinding insitu-tenant --clusterrole=insitu-tenant --user=USER -n NAMESPACE"
	for name, test := range map[string]struct {
		flags     []string
		want, not []string
	}{
		"of the cluster": {
			flags: []string{"--set=crds.install=true"},
			want:  []string{"Insitu ", "\n  helm test insitu -n insitu-system --logs\n", "kubectl get statefulsets.apps.kruise.io -A -o wide", metrics},
			not:   []string{definitions, "tenant"},
		},
		"without definitions": {
			flags: []string{withoutCRDs}, want: []string{definitions + " The manager does not start without them."},
		},
		"of a tenant": {
			flags: []string{namespaced},
			want: []string{
				"and acts in shop.", "helm test insitu -n insitu-system --logs",
				"kubectl get statefulsets.apps.kruise.io -n shop -o wide",
			},
			not: []string{" -A", metrics, definitions, "clusterrole"},
		},
		"for tenants": {
			flags: []string{clusterParts},
			want:  []string{"without a manager", tenant, "helm install insitu CHART -n NAMESPACE --set rbac.scope=Namespace", definitions + " Managers do not start"},
			not:   []string{"There is no ClusterRole", "helm test", metrics, "label namespace"},
		},
		"for tenants with roles from elsewhere": {
			flags: []string{clusterParts, "--set=rbac.create=false,crds.install=true"},
			want:  []string{"There is no ClusterRole for tenants, since rbac.create is false."},
			not:   []string{"rolebinding", definitions},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			found := notes(t, test.flags...)

			for _, want := range test.want {
				g.Expect(found).To(ContainSubstring(want))
			}
			for _, not := range test.not {
				g.Expect(found).NotTo(ContainSubstring(not))
			}
		})
	}
}
