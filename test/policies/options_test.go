// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// TestOptions has the labels and annotations written to the API server.
func TestOptions(t *testing.T) {
	c := newClient(t)
	cases, err := policies.OptionsCases()
	must(t, err)
	for i, one := range cases { // what is stored was written before the policy came
		if before, _, err := one.Objects(); err == nil && before != nil {
			before.SetNamespace(metav1.NamespaceDefault)
			before.SetName(fmt.Sprintf("options-%d", i))
			must(t, c.Create(t.Context(), before))
		}
	}
	installOptions(t, c)
	for i, one := range cases {
		t.Run(one.Name, func(t *testing.T) {
			before, written, err := one.Objects()
			must(t, err)
			written.SetNamespace(metav1.NamespaceDefault)
			written.SetName(fmt.Sprintf("options-%d", i))
			ctx := context.WithoutCancel(t.Context())
			t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Delete(ctx, written))) })
			if before == nil {
				err = c.Create(t.Context(), written, client.FieldOwner(one.Manager))
			} else {
				err = c.Update(t.Context(), written, client.FieldOwner(one.Manager))
			}
			if one.Refused == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(one.Refused)))
		})
	}
}

// installOptions installs the policy until the test ends, and returns when it acts.
func installOptions(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := policies.OptionsObjects()
	must(t, err)
	probe := base(t, c, "Deployment", "is-there-an-options-policy")
	ctx := context.WithoutCancel(t.Context())
	try := func() error {
		tried := probe.DeepCopyObject().(client.Object)
		tried.GetLabels()[native.UpdatePolicyLabel] = "probe"

		return c.Update(ctx, tried, client.DryRunAll)
	}
	for _, obj := range objects {
		must(t, c.Create(ctx, obj))
	}
	t.Cleanup(func() {
		for _, obj := range objects {
			must(t, c.Delete(ctx, obj))
		}
		NewWithT(t).Eventually(try, switchDelay).Should(Succeed())
	})
	NewWithT(t).Eventually(try, switchDelay).ShouldNot(Succeed())
}
