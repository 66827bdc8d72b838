// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// TestUnjudgedWritesAreRefused holds that a write goes nowhere without a policy that
// holds: it could recreate all pods. A policy that writes defaults is in nobody's way.
func TestUnjudgedWritesAreRefused(t *testing.T) {
	g := NewWithT(t)
	var installed admissionregistrationv1.MutatingAdmissionPolicyList
	g.Expect(newClient(t).List(t.Context(), &installed)).To(Succeed())

	want := map[string]admissionregistrationv1.FailurePolicyType{
		"insitu-hold-deployments":      admissionregistrationv1.Fail,
		"insitu-hold-statefulsets":     admissionregistrationv1.Fail,
		"insitu-hold-daemonsets":       admissionregistrationv1.Fail,
		"insitu-defaults-statefulsets": admissionregistrationv1.Ignore,
		"insitu-defaults-clonesets":    admissionregistrationv1.Ignore,
	}
	found := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, policy := range installed.Items {
		found[policy.Name] = *policy.Spec.FailurePolicy
	}
	g.Expect(found).To(Equal(want))
}
