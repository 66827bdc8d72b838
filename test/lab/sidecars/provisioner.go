// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	csicontroller "github.com/kubernetes-csi/external-provisioner/v6/pkg/controller"
	"github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/util/workqueue"
	csitranslation "k8s.io/csi-translation-lib"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// runProvisioner makes volumes for claims, and deletes those that no claim
// has any more. The driver has no topology: every node reaches every volume.
func runProvisioner(ctx context.Context, s *sidecar) error {
	snapshots, err := versioned.NewForConfig(s.config)
	if err != nil {
		return fmt.Errorf("make client for snapshots: %w", err)
	}
	driver, err := csicontroller.Connect(ctx, s.address, metrics.NewCSIMetricsManager(""))
	if err != nil {
		return fmt.Errorf("reach driver: %w", err)
	}
	name, err := csicontroller.GetDriverName(driver, changeTimeout)
	if err != nil {
		return fmt.Errorf("find name of driver: %w", err)
	}
	plugin, can, err := csicontroller.GetDriverCapabilities(driver, changeTimeout)
	if err != nil {
		return fmt.Errorf("find out what the driver can do: %w", err)
	}
	factory := informers.NewSharedInformerFactory(s.client, resync)
	classes, claims := factory.Storage().V1().StorageClasses(), factory.Core().V1().PersistentVolumeClaims()
	provisioner := csicontroller.NewCSIProvisioner(s.client, copyTimeout, name, "pvc", -1, driver, snapshots, name, plugin, can,
		"", false, false, csitranslation.New(), classes.Lister(), nil, nil, claims.Lister(), nil, nil,
		true, "xfs", nil, false, true, nil)
	provisioning := controller.NewProvisionController(ctx, s.client, name, provisioner,
		controller.LeaderElection(false),
		controller.FailedProvisionThreshold(0), controller.FailedDeleteThreshold(0), // As often as it takes.
		controller.RateLimiter(retries()), controller.RetryIntervalMax(lastRetry),
		controller.CreateProvisionedPVLimiter(workqueue.DefaultTypedControllerRateLimiter[string]()),
		controller.Threadiness(workers), controller.ClaimsInformer(claims.Informer()), controller.AddFinalizer(true),
	)
	queue := workqueue.NewTypedRateLimitingQueue(retries())
	cloning := csicontroller.NewCloningProtectionController(s.client, claims.Lister(), claims.Informer(), queue, can)
	classes.Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.Join(fmt.Errorf("read all %v", kind), ctx.Err())
		}
	}
	if cloning != nil {
		go cloning.Run(ctx, 1, nil)
	}
	// It releases snapshots whose claims went before they had a volume.
	if sweeping := csicontroller.NewSnapshotFinalizerController(snapshots, claims.Lister(), can, lastRetry); sweeping != nil {
		go sweeping.Run(ctx, &sync.WaitGroup{})
	}
	provisioning.Run(ctx)
	return nil
}
