// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/insitu-dev/insitu/resize"
)

// discoveryPeriod is how long an answer of the API server is taken as it is.
// Servers are upgraded, and their features are turned on, while the manager runs.
const discoveryPeriod = 5 * time.Minute

// Capabilities tells what the API server can do. It is safe for concurrent use.
// Those that are nil can do everything.
type Capabilities struct {
	discovery discovery.ServerResourcesInterfaceWithContext
	clock     clock.PassiveClock

	mutex     sync.Mutex
	asked     time.Time
	canResize bool
}

// NewCapabilities returns the capabilities of the server that a discovery client
// asks. Nothing is asked before it has to be known.
func NewCapabilities(discovery discovery.ServerResourcesInterfaceWithContext, clock clock.PassiveClock) *Capabilities {
	return &Capabilities{discovery: discovery, clock: clock, canResize: true}
}

// CanResize reports whether resources of a running pod can be changed. The server
// is asked every five minutes at most. While it gives no answer its last one holds,
// and before it gave any, it is taken to be able: a write that it does not know
// fails and does no harm, a pod that is recreated for nothing is gone.
func (c *Capabilities) CanResize(ctx context.Context) bool {
	if c == nil {
		return true
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.clock.Now()
	if now.Before(c.asked.Add(discoveryPeriod)) {
		return c.canResize
	}
	c.asked = now
	served, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, corev1.SchemeGroupVersion.String())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to discover whether pods can be resized", "assumed", c.canResize)
		return c.canResize
	}
	c.canResize = slices.ContainsFunc(served.APIResources, isPodResize)
	return c.canResize
}

// HasMutatingPolicies reports whether the server has mutating admission policies: since
// Kubernetes 1.36. A server that gives no answer is taken to have them.
func (c *Capabilities) HasMutatingPolicies(ctx context.Context) bool {
	if c == nil {
		return true
	}
	served, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, admissionregistrationv1.SchemeGroupVersion.String())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to discover whether there are mutating admission policies", "assumed", true)
		return true
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "mutatingadmissionpolicies" })
}

// isPodResize reports whether a resource is what pods are resized through.
func isPodResize(r metav1.APIResource) bool {
	return r.Name == corev1.ResourcePods.String()+"/"+resize.Subresource && slices.Contains(r.Verbs, "patch")
}
