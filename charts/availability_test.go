// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestDisruptionBudget: it is of the manager's pods and no others, and there is none that
// would protect nothing.
func TestDisruptionBudget(t *testing.T) {
	g := NewWithT(t)
	all := render(t, withoutCRDs, withPolicies)
	var budget policyv1.PodDisruptionBudget
	all.find(t, "PodDisruptionBudget", "insitu-manager", &budget)
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
	for owner, pod := range podsIn(t, all) {
		g.Expect(selector.Matches(labels.Set(pod.Labels))).To(Equal(owner == "Deployment/insitu-manager"), owner)
	}
	g.Expect(render(t, withoutCRDs, "--set=replicas=1").ofKind("PodDisruptionBudget")).To(BeEmpty())
	g.Expect(render(t, withoutCRDs, "--set=podDisruptionBudget.enabled=false").ofKind("PodDisruptionBudget")).To(BeEmpty())
}

func TestSpread(t *testing.T) {
	g := NewWithT(t)
	var manager appsv1.Deployment
	render(t, withoutCRDs).find(t, "Deployment", "insitu-manager", &manager)

	pods := manager.Spec.Template.Spec
	// A second one would be of no use, nor would the first then: nodes need not have the
	// label of a zone.
	g.Expect(pods.TopologySpreadConstraints).To(HaveLen(1))
	constraint := pods.TopologySpreadConstraints[0]
	g.Expect(constraint.TopologyKey).To(Equal(corev1.LabelHostname))
	g.Expect(constraint.WhenUnsatisfiable).To(Equal(corev1.ScheduleAnyway), "a cluster with one node has both replicas there")
	g.Expect(constraint.LabelSelector).To(Equal(manager.Spec.Selector))
	zones := pods.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	g.Expect(zones).To(HaveLen(1))
	g.Expect(zones[0].PodAffinityTerm.TopologyKey).To(Equal(corev1.LabelTopologyZone))
	g.Expect(zones[0].PodAffinityTerm.LabelSelector).To(Equal(manager.Spec.Selector))
}

// TestNetworkPolicy: it is of all pods of the release, and says what was asked for.
func TestNetworkPolicy(t *testing.T) {
	g := NewWithT(t)
	g.Expect(render(t, withoutCRDs).ofKind("NetworkPolicy")).To(BeEmpty(), "off by default")

	all := render(t, withoutCRDs, withPolicies, "--set=networkPolicy.enabled=true")
	var open networkingv1.NetworkPolicy
	all.find(t, "NetworkPolicy", "insitu-manager", &open)
	selector, err := metav1.LabelSelectorAsSelector(&open.Spec.PodSelector)
	g.Expect(err).NotTo(HaveOccurred())
	pods := podsIn(t, all)
	g.Expect(pods).To(HaveLen(3))
	for owner, pod := range pods {
		g.Expect(selector.Matches(labels.Set(pod.Labels))).To(BeTrue(), owner)
	}
	g.Expect(open.Spec.Egress).To(Equal([]networkingv1.NetworkPolicyEgressRule{{}}), "anywhere, as nothing says where the API server is")
	g.Expect(open.Spec.Ingress).To(HaveLen(2))
	g.Expect(open.Spec.Ingress[0].Ports[0].Port.IntValue()).To(Equal(8081))
	g.Expect(open.Spec.Ingress[1].Ports[0].Port.IntValue()).To(Equal(8443))
	g.Expect(open.Spec.Ingress[1].From).To(BeEmpty())

	var narrow networkingv1.NetworkPolicy
	render(t, namespaced).find(t, "NetworkPolicy", "insitu-manager", &narrow)
	g.Expect(narrow.Spec.Ingress[1].From).To(HaveLen(1))
	g.Expect(narrow.Spec.Ingress[1].From[0].NamespaceSelector.MatchLabels).To(Equal(map[string]string{corev1.LabelMetadataName: "monitoring"}))
	g.Expect(narrow.Spec.Egress).To(HaveLen(1))
	g.Expect(narrow.Spec.Egress[0].To).To(ConsistOf(
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.10/32"}},
		networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.11/32"}},
	))
	g.Expect(narrow.Spec.Egress[0].Ports[0].Port.IntValue()).To(Equal(6443))

	var blind networkingv1.NetworkPolicy
	render(t, withoutCRDs, "--set=networkPolicy.enabled=true,metrics.enabled=false").find(t, "NetworkPolicy", "insitu-manager", &blind)
	g.Expect(blind.Spec.Ingress).To(HaveLen(1), "there are no metrics to be read")
}

// TestGuardKnowsTheManagersOfTenants: it would refuse what they delete otherwise.
func TestGuardKnowsTheManagersOfTenants(t *testing.T) {
	g := NewWithT(t)
	users := func(flags ...string) string {
		var guard admissionregistrationv1.ValidatingAdmissionPolicy
		render(t, flags...).find(t, "ValidatingAdmissionPolicy", "insitu-deletion-guard", &guard)

		return guard.Spec.MatchConditions[2].Expression
	}

	g.Expect(users(withoutCRDs, "--set=deletionGuard.enabled=true")).To(ContainSubstring("in ['system:serviceaccount:insitu-system:insitu-manager'] +"))
	g.Expect(users(clusterParts)).To(ContainSubstring("in ['system:serviceaccount:shop:insitu-manager'] +"))
}
