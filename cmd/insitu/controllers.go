// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/statefulset"
)

// addControllers adds every controller to the manager.
func addControllers(manager ctrl.Manager, config configv1alpha1.ControllersConfiguration) error {
	err := cloneset.Add(manager, cloneset.Options{
		MaxConcurrentReconciles: int(*config.CloneSet.MaxConcurrentReconciles),
	})
	if err != nil {
		return err
	}
	return statefulset.Add(manager, statefulset.Options{
		MaxConcurrentReconciles: int(*config.StatefulSet.MaxConcurrentReconciles),
	})
}
