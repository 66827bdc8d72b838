// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
)

// TestNotesAboutHolds looks at what Helm prints where the API server has the policies. The
// rest of the notes takes no server, and has its test in charts.
func TestNotesAboutHolds(t *testing.T) {
	g := NewWithT(t)
	helm := newHelm(t)
	notes := func(flags ...string) string {
		// Under a name of its own: another test leaves a release behind.
		out := helm(append([]string{"install", "notes", "charts/insitu", "--dry-run=server", "--take-ownership", "--set=crds.install=false"}, flags...)...)
		_, notes, found := strings.Cut(out, "\nNOTES:\n") // after the manifests
		g.Expect(found).To(BeTrue(), out)
		return notes
	}
	const held = "kubectl get deployments,statefulsets.apps,daemonsets "
	const release = "kubectl label deployments,statefulsets.apps,daemonsets "
	const value = " -l insitu.dev/held --overwrite insitu.dev/held=release"
	served, err := discovery.NewDiscoveryClientForConfig(admin)
	g.Expect(err).NotTo(HaveOccurred())
	list, err := served.ServerResourcesForGroupVersionWithContext(t.Context(), "admissionregistration.k8s.io/v1")
	g.Expect(err).NotTo(HaveOccurred())
	hasPolicies := false
	for _, resource := range list.APIResources {
		hasPolicies = hasPolicies || resource.Name == "mutatingadmissionpolicies"
	}
	if !hasPolicies { // before Kubernetes 1.36
		g.Expect(notes()).NotTo(ContainSubstring("insitu.dev/held"))
		return
	}

	g.Expect(notes()).To(And(ContainSubstring(held+"-A -l insitu.dev/held"), ContainSubstring(release+"-A"+value)))
	g.Expect(notes("--set=holdPolicies.install=false")).NotTo(ContainSubstring("insitu.dev/held"))
	g.Expect(notes("--set=rbac.scope=Namespace,metrics.secure=false,config.namespaces={shop}")).To(And(
		ContainSubstring(held+"-n shop -l insitu.dev/held"), ContainSubstring(release+"-n shop"+value),
		ContainSubstring("one of those that the administrator of the cluster has chosen"),
		Not(ContainSubstring(" -A")),
	))
	g.Expect(notes("--set=manager.enabled=false,config.namespaces={shop}", `--set=holdPolicies.namespaceSelector.matchLabels.insitu\.dev/manager=tenant`)).To(And(
		ContainSubstring("  kubectl label namespace NAMESPACE insitu.dev/manager=tenant\n"),
		ContainSubstring("  matchLabels:\n    insitu.dev/manager: tenant\n"),
		ContainSubstring("    - shop\n"),
	))
	g.Expect(notes("--set=manager.enabled=false,config.namespaces={shop}")).NotTo(ContainSubstring("kubectl label namespace"), "no label would do it")
}
