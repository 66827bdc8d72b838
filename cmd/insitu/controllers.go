// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/imagepull"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/recreaterequest"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// optional are the kinds without which the manager serves all others.
type optional struct {
	pullJobs, recreateRequests []client.Object
}

// servedOf returns the optional kinds that the API server serves.
func servedOf(mapper meta.RESTMapper) (served optional, err error) {
	if served.pullJobs, err = imagepull.Served(mapper); err != nil {
		return served, err
	}
	served.recreateRequests, err = recreaterequest.Served(mapper)
	return served, err
}

// lacking names the kinds that are not served; empty if all are.
func (o optional) lacking() []string {
	var names []string
	if len(o.pullJobs) == 0 {
		names = append(names, "ImagePullJobs")
	}
	if len(o.recreateRequests) == 0 {
		names = append(names, "ContainerRecreateRequests")
	}
	return names
}

// addControllers adds every controller to the manager; those of optional kinds where they are served.
func addControllers(ctx context.Context, manager ctrl.Manager, all *configv1alpha1.InsituConfiguration, measured metrics.Metrics, served optional) error {
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
	if len(served.pullJobs) > 0 {
		if err := imagepull.Add(manager, pulling, measured.Moves, all.Scope == configv1alpha1.NamespaceScope); err != nil {
			return err
		}
	}
	if len(served.recreateRequests) > 0 {
		if err := recreaterequest.Add(ctx, manager, turns, measured.Moves); err != nil {
			return err
		}
	}
	return gates.Add(manager, len(served.recreateRequests) > 0)
}

// newCapabilities returns what the controllers ask for the capabilities of the
// manager's API server. Everybody who has an identity may read what it serves.
func newCapabilities(manager ctrl.Manager) (*workload.Capabilities, error) {
	found, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	return workload.NewCapabilities(found, clock.RealClock{}), nil
}
