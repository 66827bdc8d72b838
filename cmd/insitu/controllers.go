// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/imagepull"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// addControllers adds every controller to the manager; those of jobs that pull images where the API
// server serves them.
func addControllers(manager ctrl.Manager, all *configv1alpha1.InsituConfiguration, measured metrics.Metrics, servesPullJobs bool) error {
	capabilities, err := newCapabilities(manager)
	if err != nil {
		return err
	}
	turns := executor.NewTurns()
	pulling := &executor.Pulling{
		Policy: appsv1beta1.ImagePullPolicyType(all.ImagePull.Policy), MaxConcurrent: int(*all.ImagePull.MaxConcurrent),
	}
	for _, kind := range kinds {
		err := kind.add(manager, engine.Options{
			MaxConcurrentReconciles: int(*kind.of(all.Controllers).MaxConcurrentReconciles),
			NamespaceScope:          all.Scope == configv1alpha1.NamespaceScope,
			Capabilities:            capabilities, Turns: turns, Pulling: pulling, Metrics: measured,
		})
		if err != nil {
			return err
		}
	}
	if servesPullJobs {
		if err := imagepull.Add(manager, pulling, all.Scope == configv1alpha1.NamespaceScope); err != nil {
			return err
		}
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
