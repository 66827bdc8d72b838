// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/insitu-dev/insitu/apis/native"
)

// TestPermissions holds the limits of what the chart may grant, whatever the
// values are.
func TestPermissions(t *testing.T) {
	for name, flags := range modes {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, flags...)

			roles := all.ofKind("Role", "ClusterRole")
			g.Expect(roles).NotTo(BeEmpty())
			g.Expect(all.ofKind("Secret", "Namespace")).To(BeEmpty())
			for _, obj := range roles {
				// A Role has the fields of a ClusterRole that are read here.
				var role rbacv1.ClusterRole
				g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role)).To(Succeed())
				g.Expect(role.Rules).NotTo(BeEmpty(), role.Name)
				g.Expect(role.AggregationRule).To(BeNil(), role.Name)
				for _, rule := range role.Rules {
					g.Expect(excesses(rule)).To(BeEmpty(), "%s: %v", role.Name, rule)
				}
			}
			for _, obj := range all.ofKind("RoleBinding", "ClusterRoleBinding") {
				var binding rbacv1.ClusterRoleBinding
				g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &binding)).To(Succeed())
				g.Expect(binding.RoleRef.Name).To(Or(HaveSuffix("-manager"), HaveSuffix("-manager-workloads")), "only roles of the chart are bound")
				g.Expect(binding.Subjects).To(HaveLen(1))
				g.Expect(binding.Subjects[0].Kind).To(Equal(rbacv1.ServiceAccountKind))
			}
		})
	}
}

// heartbeat is what the manager may do to the switch, the only ServiceAccount that it may
// write to: it has no right, and no pod runs as it.
var heartbeat = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{native.SwitchName}, Verbs: []string{"patch"},
}

// TestNamespacedHasNothingOfTheCluster: a tenant may not make such an object, and whatever
// the other values are, none is rendered.
func TestNamespacedHasNothingOfTheCluster(t *testing.T) {
	namespacedKinds := []string{
		"ConfigMap", "Deployment", "Job", "NetworkPolicy", "Pod", "PodDisruptionBudget", "PrometheusRule", "Role", "RoleBinding",
		"Service", "ServiceAccount", "ServiceMonitor",
	}
	for name, flags := range map[string][]string{
		"golden": {namespaced, withPolicies},
		"rich":   {rich, withPolicies, "--set=rbac.scope=Namespace,rbac.aggregateToDefaultRoles=true,crds.install=true,holdPolicies.install=true,deletionGuard.enabled=false,metrics.secure=false,metrics.certSecret="},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, flags...)

			g.Expect(all.ofKind("Role")).To(HaveLen(2), "for the namespace, and for the Lease")
			for _, obj := range all {
				g.Expect(namespacedKinds).To(ContainElement(obj.GetKind()))
				g.Expect(obj.GetNamespace()).To(BeElementOf("insitu-system", "shop"), obj.GetKind()+" "+obj.GetName())
			}
			for _, obj := range all.ofKind("RoleBinding") {
				var binding rbacv1.RoleBinding
				all.find(t, "RoleBinding", obj.GetName(), &binding)
				g.Expect(binding.RoleRef.Kind).To(Equal("Role"), "a ClusterRole may grant anything")
			}
		})
	}
}

// TestClusterPartsGrantNothing: without a manager, roles are for users alone.
func TestClusterPartsGrantNothing(t *testing.T) {
	g := NewWithT(t)
	all := render(t, modes["cluster-parts"]...)

	g.Expect(all.ofKind("RoleBinding", "ClusterRoleBinding", "ServiceAccount", "Role")).To(BeEmpty())
	g.Expect(all.ofKind("ClusterRole")).To(HaveLen(3))
	for _, role := range all.ofKind("ClusterRole") {
		if role.GetName() == "insitu-tenant" {
			g.Expect(role.GetLabels()).NotTo(HaveKey(HavePrefix("rbac.authorization.k8s.io/")), "an administrator says who is a tenant")
			continue
		}
		g.Expect(role.GetLabels()).To(HaveKeyWithValue("rbac.authorization.k8s.io/aggregate-to-edit", "true"), role.GetName())
	}
}

// TestManagerWritesNoWorkload holds what the manager never does to the objects
// of users: it reports in their status, and leaves them as they were written. Those of
// Kubernetes have no status for that, and it ends their hold: it may patch them.
func TestManagerWritesNoWorkload(t *testing.T) {
	g := NewWithT(t)
	var role rbacv1.ClusterRole
	render(t, withoutCRDs).find(t, "ClusterRole", "insitu-manager", &role)

	for _, rule := range role.Rules {
		if isAbout(rule, "statefulsets", "clonesets", "daemonsets") {
			verbs := []string{"get", "list", "watch"}
			if slices.Contains(rule.APIGroups, "apps") {
				verbs = append(verbs, "patch")
			}
			g.Expect(rule.Verbs).To(ConsistOf(verbs))
		}
	}
}

// isAbout reports whether a rule is about one of the resources.
func isAbout(rule rbacv1.PolicyRule, resources ...string) bool {
	return slices.ContainsFunc(resources, func(resource string) bool { return slices.Contains(rule.Resources, resource) })
}

func TestExcesses(t *testing.T) {
	for name, rule := range map[string]rbacv1.PolicyRule{
		"every group":      {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		"every resource":   {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		"every verb":       {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		"every status":     {APIGroups: []string{""}, Resources: []string{"*/status"}, Verbs: []string{"patch"}},
		"secrets":          {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		"nodes":            {APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}},
		"writes to nodes":  {APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "patch"}},
		"tokens":           {APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		"roles":            {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get"}},
		"escalate":         {APIGroups: []string{"x"}, Resources: []string{"y"}, Verbs: []string{"escalate"}},
		"impersonate":      {APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}},
		"exec":             {APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		"every path":       {NonResourceURLs: []string{"/*"}, Verbs: []string{"get"}},
		"ephemeral":        {APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch"}},
		"admission config": {APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(excesses(rule)).NotTo(BeEmpty())
		})
	}
	for _, resource := range []string{"pods", "nodes"} {
		rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
		NewWithT(t).Expect(excesses(rule)).To(BeEmpty(), resource)
	}
}

// excesses returns what of a rule must never be granted.
func excesses(rule rbacv1.PolicyRule) []string {
	if equality.Semantic.DeepEqual(rule, heartbeat) {
		return []string{}
	}
	never := map[string][]string{
		"apiGroups": {"*", rbacv1.GroupName, "admissionregistration.k8s.io", "apiextensions.k8s.io"},
		"resources": {
			"*", "*/*", "*/status", "*/scale", "*/finalizers",
			"secrets", "nodes/proxy", "nodes/status", "serviceaccounts", "serviceaccounts/token",
			"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers",
		},
		"verbs":           {"*", "escalate", "bind", "impersonate"},
		"nonResourceURLs": {"*", "/*"},
	}
	found := []string{}
	if slices.Contains(rule.Resources, "nodes") {
		// Which nodes run a pod of a DaemonSet is read from them, and nothing is written to them.
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				found = append(found, "nodes: "+verb)
			}
		}
	}
	for field, values := range map[string][]string{
		"apiGroups": rule.APIGroups, "resources": rule.Resources, "verbs": rule.Verbs, "nonResourceURLs": rule.NonResourceURLs,
	} {
		for _, value := range values {
			if slices.Contains(never[field], value) {
				found = append(found, field+": "+value)
			}
		}
	}

	return found
}
