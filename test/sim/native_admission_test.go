// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/policies"
)

// TestAdmissionIsThatOfThePolicies compares the simulated admission with the tables that the
// policies are tested with. It knows no webhooks, no field managers, and no feature gates.
// What the API server refuses does not happen in the simulation.
func TestAdmissionIsThatOfThePolicies(t *testing.T) {
	cases, err := policies.Cases()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for kind, ofKind := range cases {
		for _, one := range ofKind {
			if one.Webhook != nil || one.Manager != "" || one.Gate != "" || one.Refused != "" || one.Spoilt {
				continue
			}
			t.Run(kind+"/"+one.Name, func(t *testing.T) {
				got := one.New.DeepCopyObject().(client.Object)
				admitNative(one.Old, got)

				g := NewWithT(t)
				g.Expect(maps.Equal(got.GetLabels(), one.Want.GetLabels())).To(BeTrue(), "labels %v", got.GetLabels())
				g.Expect(maps.Equal(got.GetAnnotations(), one.Want.GetAnnotations())).To(BeTrue(), "annotations %v", got.GetAnnotations())
				if gotten, wanted := specOf(got), specOf(one.Want); !apiequality.Semantic.DeepEqual(gotten, wanted) {
					g.Expect(gotten).To(Equal(wanted))
				}
			})
		}
	}
}
