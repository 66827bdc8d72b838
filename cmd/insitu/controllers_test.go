// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/insitu-dev/insitu/controllers/workload"
)

// TestAnyUserMayAskWhetherPodsCanBeResized checks that the manager needs no
// permission of its own for it, and that the server says it in the words that are
// looked for.
func TestAnyUserMayAskWhetherPodsCanBeResized(t *testing.T) {
	g := NewWithT(t)
	anyUser := rest.CopyConfig(admin)
	anyUser.Impersonate.UserName = "any-user"
	client, err := discovery.NewDiscoveryClientForConfig(anyUser)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.ServerResourcesForGroupVersionWithContext(t.Context(), "v1")

	g.Expect(err).NotTo(HaveOccurred(), "an error would be taken for a yes")
	g.Expect(workload.NewCapabilities(client, clock.RealClock{}).CanResize(t.Context())).To(BeTrue())
}
