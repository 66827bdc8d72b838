// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Servers with admission policies, and older ones.
const (
	withPolicies    = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	withoutPolicies = "--api-versions=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
)

// TestPolicies compares the policies that the chart installs with those of
// config/policies.
func TestPolicies(t *testing.T) {
	g := NewWithT(t)
	got := policiesOf(render(t, withoutCRDs, withPolicies))
	var files objects
	paths, err := filepath.Glob("../config/policies/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, path := range paths {
		files = append(files, decode(t, readFile(t, path))...)
	}

	g.Expect(specsOf(t, got)).To(Equal(specsOf(t, policiesOf(files))))
	g.Expect(got).To(HaveLen(22))

	output, err := runTool(t, kustomize, "build", "config/default")
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(specsOf(t, policiesOf(decode(t, output)))).To(Equal(specsOf(t, got)))
}

func TestPoliciesAreLeftOut(t *testing.T) {
	g := NewWithT(t)

	g.Expect(policiesOf(render(t, withoutCRDs, withoutPolicies))).To(BeEmpty(), "the server does not know their kind")
	g.Expect(policiesOf(render(t, withoutCRDs, withPolicies, "--set=holdPolicies.install=false"))).To(
		And(HaveLen(2), HaveEach(HaveField("Object", HaveKeyWithValue("metadata", HaveKeyWithValue("name", "insitu-drain"))))))
	g.Expect(policiesOf(render(t, withoutCRDs, withPolicies, "--set=drainPolicy.install=false"))).To(
		And(HaveLen(20), Not(ContainElement(HaveField("Object", HaveKeyWithValue("metadata", HaveKeyWithValue("name", "insitu-drain")))))))
	neither := render(t, withoutCRDs, withPolicies, "--set=holdPolicies.install=false,drainPolicy.install=false")
	g.Expect(policiesOf(neither)).To(BeEmpty())
	g.Expect(neither.ofKind("ServiceAccount")).To(HaveLen(1), "no switch")
}

// TestPoliciesHoldWhereTheManagerActs looks at the namespaces of the policies, and at the
// switch. Names are the same in all releases, so that Helm refuses a second one.
func TestPoliciesHoldWhereTheManagerActs(t *testing.T) {
	names := []string{"insitu-drain"}
	for _, kind := range []string{"deployments", "statefulsets", "daemonsets"} {
		names = append(names, "insitu-hold-"+kind, "insitu-keep-"+kind)
	}
	for _, policy := range names {
		g := NewWithT(t)
		var binding admissionregistrationv1.MutatingAdmissionPolicyBinding
		render(t, withoutCRDs, withPolicies, "--set=manager.enabled=false,config.namespaces={shop,bank}", "--set=fullnameOverride=changer").
			find(t, "MutatingAdmissionPolicyBinding", policy, &binding)

		g.Expect(binding.Spec.PolicyName).To(Equal(policy))
		g.Expect(binding.Spec.MatchResources.NamespaceSelector.MatchExpressions).To(HaveLen(1))
		requirement := binding.Spec.MatchResources.NamespaceSelector.MatchExpressions[0]
		g.Expect(requirement.Key).To(Equal("kubernetes.io/metadata.name"))
		g.Expect(requirement.Values).To(Equal([]string{"shop", "bank"}))
		g.Expect(*binding.Spec.ParamRef).To(HaveField("Name", "insitu-holds"))
		g.Expect(binding.Spec.ParamRef.Namespace).To(BeEmpty(), "it is that of the workload")
	}
}

// TestSwitch holds that the switch is where the policies look for it.
func TestSwitch(t *testing.T) {
	g := NewWithT(t)
	var binding admissionregistrationv1.MutatingAdmissionPolicyBinding
	all := render(t, withoutCRDs, withPolicies, "--namespace=tools")
	all.find(t, "MutatingAdmissionPolicyBinding", "insitu-hold-deployments", &binding)
	g.Expect(binding.Spec.ParamRef.Namespace).To(Equal("tools"))
	var account corev1.ServiceAccount
	all.find(t, "ServiceAccount", "insitu-holds", &account)
	g.Expect(account.Namespace).To(Equal("tools"))

	render(t, namespaced, "--set=config.namespaces={shop}").find(t, "ServiceAccount", "insitu-holds", &account)
	g.Expect(account.Namespace).To(Equal("shop"), "where the manager acts")
}

// TestReleaseStays holds that what releases is not deleted by an uninstall, acts everywhere,
// and needs no parameter.
func TestReleaseStays(t *testing.T) {
	g := NewWithT(t)
	all := render(t, withoutCRDs, withPolicies, "--set=config.namespaces={shop}")
	for _, obj := range policiesOf(all) {
		stays := HaveKeyWithValue("helm.sh/resource-policy", "keep")
		if !strings.HasPrefix(obj.GetName(), "insitu-release-") {
			g.Expect(obj.GetAnnotations()).NotTo(stays, obj.GetName())
			continue
		}
		g.Expect(obj.GetAnnotations()).To(stays, obj.GetName())
		g.Expect(obj.Object["spec"]).NotTo(Or(HaveKey("paramKind"), HaveKey("paramRef"), HaveKey("matchResources")), obj.GetName())
	}
}

// TestAuditAnnotations compares the policies of the chart with those of config/audit,
// config/claims, config/options and config/templates, and holds that the first can refuse nothing.
func TestAuditAnnotations(t *testing.T) {
	g := NewWithT(t)
	kinds := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	got := render(t, withoutCRDs).ofKind(kinds...)

	var files objects
	for _, folder := range []string{"audit", "claims", "options", "templates"} {
		files = append(files, decode(t, readFile(t, "../config/"+folder+"/policy.yaml"))...)
	}
	g.Expect(specsOf(t, got)).To(Equal(specsOf(t, files)))
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	got.find(t, "ValidatingAdmissionPolicy", "insitu-audit", &policy)
	g.Expect(*policy.Spec.FailurePolicy).To(Equal(admissionregistrationv1.Ignore))
	g.Expect(policy.Spec.Validations).To(Equal([]admissionregistrationv1.Validation{{Expression: "true"}}))
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	got.find(t, "ValidatingAdmissionPolicyBinding", "insitu-audit", &binding)
	g.Expect(binding.Spec.ValidationActions).To(Equal([]admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}))

	output, err := runTool(t, kustomize, "build", "config/default")
	g.Expect(err).NotTo(HaveOccurred(), output)
	g.Expect(specsOf(t, decode(t, output).ofKind(kinds...))).To(Equal(specsOf(t, got)))
	g.Expect(render(t, withoutCRDs, "--set=auditAnnotations.enabled=false,claimGuard.enabled=false,templateGuard.enabled=false,holdPolicies.install=false").ofKind(kinds...)).To(BeEmpty())

	other := render(t, withoutCRDs, "--namespace=tools", "--set=serviceAccount.name=changer")
	other.find(t, "ValidatingAdmissionPolicy", "insitu-audit", &policy)
	g.Expect(policy.Spec.MatchConditions[0].Expression).To(Equal("request.userInfo.username in ['system:serviceaccount:tools:changer']"))

	none := []string{withoutCRDs, "--set=manager.enabled=false,holdPolicies.install=false,claimGuard.enabled=false,templateGuard.enabled=false"}
	g.Expect(render(t, none...).ofKind(kinds...)).To(BeEmpty(), "there is no manager")
	render(t, append(none, "--set=manager.tenantAccounts={shop:changer}")...).find(t, "ValidatingAdmissionPolicy", "insitu-audit", &policy)
	g.Expect(policy.Spec.MatchConditions[0].Expression).To(Equal("request.userInfo.username in ['system:serviceaccount:shop:changer']"))
}

func policiesOf(all objects) objects {
	return all.ofKind("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
}

// specsOf returns the specs of objects by kind and name.
func specsOf(t *testing.T, all objects) map[string]any {
	t.Helper()
	specs := map[string]any{}
	for _, obj := range all {
		spec, found, err := unstructured.NestedMap(obj.Object, "spec")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(found).To(BeTrue())
		specs[obj.GetKind()+"/"+obj.GetName()] = spec
	}

	return specs
}
