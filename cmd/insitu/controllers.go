// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// addControllers adds every controller to the manager.
func addControllers(manager ctrl.Manager, all *configv1alpha1.InsituConfiguration, measured metrics.Metrics) error {
	config, isNamespaced := all.Controllers, all.Scope == configv1alpha1.NamespaceScope
	capabilities, err := newCapabilities(manager)
	if err != nil {
		return err
	}
	err = cloneset.Add(manager, cloneset.Options{
		MaxConcurrentReconciles: int(*config.CloneSet.MaxConcurrentReconciles),
		NamespaceScope:          isNamespaced,
		Capabilities:            capabilities,
		Metrics:                 measured,
	})
	if err != nil {
		return err
	}
	err = statefulset.Add(manager, statefulset.Options{
		MaxConcurrentReconciles: int(*config.StatefulSet.MaxConcurrentReconciles),
		NamespaceScope:          isNamespaced,
		Capabilities:            capabilities,
		Metrics:                 measured,
	})
	if err != nil {
		return err
	}
	err = native.Add(manager, native.Options{
		MaxConcurrentReconciles: int(*config.Native.MaxConcurrentReconciles),
		Capabilities:            capabilities,
		Metrics:                 measured,
	})
	if err != nil {
		return err
	}
	return gates.Add(manager)
}

// newCapabilities returns what the controllers ask for the capabilities of the
// manager's API server. Everybody who has an identity may read what it serves.
func newCapabilities(manager ctrl.Manager) (*workload.Capabilities, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	return workload.NewCapabilities(client, clock.RealClock{}), nil
}
