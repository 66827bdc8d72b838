// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// switchDelay is how long the API server may take to see that the switch is gone.
const switchDelay = time.Minute

// TestSwitchedOff deletes the switch: no new hold begins, and what is held is released by
// the same writes as before.
func TestSwitchedOff(t *testing.T) {
	g := NewWithT(t)
	u := newUser(t)
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	for _, kind := range kinds {
		for _, name := range []string{"asked", "left", "rest"} {
			base(t, u.c, kind, name)
		}
		for _, name := range []string{"asked", "left"} {
			u.kubectl(nil, "set", "image", resourceOf(kind, name), "main=nginx:2")
			u.expectHeld(reference(kind, name), "with the switch")
		}
	}
	must(t, u.c.Delete(t.Context(), policies.Switch()))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, u.c.Create(ctx, policies.Switch()))
		NewWithT(t).Eventually(func() bool { return holds(ctx, t, u.c, "rest") }, switchDelay).Should(BeTrue(), "the switch is back")
	})

	g.Eventually(func() bool { return holds(t.Context(), t, u.c, "rest") }, switchDelay).Should(BeFalse())
	for _, kind := range kinds {
		u.kubectl(nil, "set", "image", resourceOf(kind, "rest"), "main=nginx:2")
		g.Expect(u.get(reference(kind, "rest")).GetLabels()).NotTo(HaveKey(native.HeldLabel), kind)

		u.kubectl(nil, "label", resourceOf(kind, "asked"), "--overwrite", "insitu.dev/held=release")
		u.kubectl(nil, "label", resourceOf(kind, "left"), "insitu.dev/update-policy-")
		for _, name := range []string{"asked", "left"} {
			released := u.get(reference(kind, name))
			g.Expect(released.GetLabels()).NotTo(HaveKey(native.HeldLabel), kind)
			g.Expect(withoutTemplate(released)).To(Equal(withoutTemplate(u.get(reference(kind, "rest")))), kind)
			for key := range released.GetAnnotations() {
				g.Expect(key).NotTo(HavePrefix("insitu.dev/"), kind)
			}
		}
	}
}

// holds reports whether a change of a Deployment would be held.
func holds(ctx context.Context, t *testing.T, c client.Client, name string) bool {
	t.Helper()
	probe := reference("Deployment", name)
	must(t, c.Patch(ctx, probe, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"probe":""}}}}}`)), client.DryRunAll))

	return probe.GetLabels()[native.HeldLabel] == native.Held
}

func resourceOf(kind, name string) string { return strings.ToLower(kind) + "s.apps/" + name }
