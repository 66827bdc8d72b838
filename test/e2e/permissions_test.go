// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/auditlog"
)

// operatorName is the name of the operator's account, of its roles and their bindings.
const operatorName = "insitu-manager"

// unasked is what the roles of the operator allow and the suite does not bring it to
// ask for, with the reason.
var unasked = map[string]string{
	// The admission plugin OwnerReferencesPermissionEnforcement, which not all clusters
	// have, wants these for an owner reference that blocks the deletion of its owner.
	// It asks the authorizer itself: there is no request.
	"update clonesets/finalizers.apps.kruise.io":         "asked for by an admission plugin",
	"update daemonsets/finalizers.apps.kruise.io":        "asked for by an admission plugin",
	"update imagelistpulljobs/finalizers.apps.kruise.io": "asked for by an admission plugin",
	"update imagepulljobs/finalizers.apps.kruise.io":     "asked for by an admission plugin",
	"update statefulsets/finalizers.apps.kruise.io":      "asked for by an admission plugin",
	"update deployments/finalizers.apps":                 "asked for by an admission plugin",
	// The recorder of the leader's event patches one that repeats. This one names the
	// process, which leads once.
	"patch events": "nothing repeats",
}

// It looks back at all specs: nothing was asked for that the chart's roles do not
// allow, they allow nothing that no spec needs, and nothing else allowed it either. On
// more than one process, ginkgo calls this on the first when the others have ended.
var _ = ReportAfterSuite("The permissions of the operator", func(ctx SpecContext, report Report) {
	if report.SuiteConfig.DryRun || api == nil {
		return
	}
	Expect(auditlog.BoundTo(operatorNamespace, operatorName, bindings(ctx))).To(Equal([]string{operatorName, operatorName}),
		"a ClusterRoleBinding and a RoleBinding, beside those of every cluster")

	events, err := auditlog.Read(auditLog(), operatorUser)
	Expect(err).NotTo(HaveOccurred())
	Expect(events).NotTo(BeEmpty())
	Expect(auditlog.Forbidden(events)).To(BeEmpty(), "what the operator asked for and its roles do not allow")

	rules := operatorRules(ctx)
	unused := auditlog.Unused(rules, events)
	Expect(auditlog.Unused(rules, nil)).To(ContainElements(slices.Collect(maps.Keys(unasked))), "what the roles do not allow is no exception")
	unused = slices.DeleteFunc(unused, func(grant string) bool { return unasked[grant] != "" })
	if report.PreRunStats.SpecsThatWillRun < report.PreRunStats.TotalSpecs || !report.SuiteSucceeded {
		GinkgoWriter.Printf("Not every spec ran to its end. Of what the roles allow, these %d were not asked for:\n", len(unused))
		for _, grant := range unused {
			GinkgoWriter.Println("  " + grant)
		}
		return
	}
	Expect(unused).To(BeEmpty(), "what the roles of the operator allow and no spec needs")
})

// bindings returns all bindings but those that Kubernetes makes in every cluster.
func bindings(ctx context.Context) []rbacv1.ClusterRoleBinding {
	GinkgoHelper()
	cluster, namespaced := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	Expect(api.List(ctx, cluster)).To(Succeed())
	Expect(api.List(ctx, namespaced)).To(Succeed())
	for _, binding := range namespaced.Items {
		cluster.Items = append(cluster.Items, rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, Subjects: binding.Subjects, RoleRef: binding.RoleRef})
	}
	return slices.DeleteFunc(cluster.Items, func(binding rbacv1.ClusterRoleBinding) bool {
		return binding.Labels["kubernetes.io/bootstrapping"] == "rbac-defaults"
	})
}

// operatorRules returns what the roles of the operator allow.
func operatorRules(ctx context.Context) []rbacv1.PolicyRule {
	GinkgoHelper()
	cluster, own := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	Expect(api.Get(ctx, client.ObjectKey{Name: operatorName}, cluster)).To(Succeed())
	Expect(api.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorName}, own)).To(Succeed())
	return append(cluster.Rules, own.Rules...)
}
