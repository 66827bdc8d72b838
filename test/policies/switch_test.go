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
		must(t, policies.Beat(ctx, u.c, policies.Lasting, true))
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

// TestManagerThatIsNotThere has the heartbeat of the manager on the switch get old: no new
// hold begins, what is held is released by the same writes as before, and a drained pod is
// ready again with the next write of its kubelet.
func TestManagerThatIsNotThere(t *testing.T) {
	g, u, node := NewWithT(t), newUser(t), newNode(t)
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	for _, kind := range kinds {
		for _, name := range []string{"late", "lost"} {
			base(t, u.c, kind, name)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, u.c.Delete(ctx, policies.Switch())) // of what has no managedFields, the API server notes none again
		must(t, u.c.Create(ctx, policies.Switch()))
		must(t, policies.Beat(ctx, u.c, policies.Lasting, true))
		NewWithT(t).Eventually(func() bool { return holds(ctx, t, u.c, "lost") }, switchDelay).Should(BeTrue(), "as it was before")
	})
	cases, err := policies.DrainCases()
	must(t, err)
	pod := drainedPod(t, u.c, cases[0].Old)
	kubelet := func() {
		before := pod.DeepCopy()
		pod.Labels, pod.Status = cases[0].Write.Pod().Labels, statusOf(cases[0].Write)
		must(t, node.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(before)))
	}
	change := func(name string, isHeld bool) {
		for _, kind := range kinds {
			u.kubectl(nil, "set", "image", resourceOf(kind, name), "main=nginx:2")
			_, is := u.get(reference(kind, name)).GetLabels()[native.HeldLabel]
			g.Expect(is).To(Equal(isHeld), "%s %s", kind, name)
		}
	}

	setHeartbeat(t, u.c, 6*time.Minute, true)
	g.Eventually(func() bool { return holds(t.Context(), t, u.c, "lost") }, switchDelay).Should(BeFalse())
	change("lost", false)
	kubelet()
	expectStored(t, pod, cases[0].Write)

	setHeartbeat(t, u.c, 2*time.Minute, true)
	g.Eventually(func() bool { return holds(t.Context(), t, u.c, "late") }, switchDelay).Should(BeTrue())
	change("late", true)

	setHeartbeat(t, u.c, 6*time.Minute, false)
	g.Eventually(func() bool { return holds(t.Context(), t, u.c, "lost") }, switchDelay).Should(BeFalse())
	for _, kind := range kinds {
		u.kubectl(nil, "set", "image", resourceOf(kind, "late"), "main=nginx:3")
		u.expectHeld(reference(kind, "late"), "what is held stays so")
		u.kubectl(nil, "label", resourceOf(kind, "late"), "--overwrite", "insitu.dev/held=release")
		g.Expect(u.get(reference(kind, "late")).GetLabels()).NotTo(HaveKey(native.HeldLabel), kind)
	}
}

// setHeartbeat writes the heartbeat of the manager, see policies.Beat.
func setHeartbeat(t *testing.T, c client.Client, age time.Duration, notes bool) {
	t.Helper()
	must(t, policies.Beat(t.Context(), c, age, notes))
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
