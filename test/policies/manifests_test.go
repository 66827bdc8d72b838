// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// TestNoWriteIsRefused holds that the policies are never in the way of a write: what they
// cannot judge goes through.
func TestNoWriteIsRefused(t *testing.T) {
	g := NewWithT(t)
	var installed admissionregistrationv1.MutatingAdmissionPolicyList
	g.Expect(newClient(t).List(t.Context(), &installed)).To(Succeed())

	g.Expect(installed.Items).To(HaveLen(11))
	for _, policy := range installed.Items {
		g.Expect(policy.Spec.FailurePolicy).To(Equal(ptr.To(admissionregistrationv1.Ignore)), policy.Name)
	}
}
