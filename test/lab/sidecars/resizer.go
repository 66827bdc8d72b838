// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/external-resizer/v2/pkg/controller"
	"github.com/kubernetes-csi/external-resizer/v2/pkg/csi"
	"github.com/kubernetes-csi/external-resizer/v2/pkg/modifier"
	"github.com/kubernetes-csi/external-resizer/v2/pkg/modifycontroller"
	"github.com/kubernetes-csi/external-resizer/v2/pkg/resizer"
	"k8s.io/client-go/informers"
)

// runResizer grows volumes, and changes their attributes, as claims ask for it.
func runResizer(ctx context.Context, s *sidecar) error {
	driver, err := csi.New(ctx, s.address, changeTimeout, metrics.NewCSIMetricsManager(""))
	if err != nil {
		return fmt.Errorf("reach driver: %w", err)
	}
	name, err := driver.GetDriverName(ctx)
	if err != nil {
		return fmt.Errorf("find name of driver: %w", err)
	}
	factory := informers.NewSharedInformerFactory(s.client, resync)
	grow, err := resizer.NewResizerFromClient(driver, changeTimeout, s.client, name)
	if err != nil {
		return fmt.Errorf("make resizer: %w", err)
	}
	// With the names of claims, for what a driver does to some of them only.
	const metadata = true
	modify, err := modifier.NewModifierFromClient(driver, changeTimeout, s.client, factory, metadata, name)
	if err != nil {
		return fmt.Errorf("make modifier: %w", err)
	}
	// Wait for the pod to go when the driver says that the volume is in use.
	const awaitUnused = true
	growing := controller.NewResizeController(name, grow, s.client, resync, factory, retries(), awaitUnused, lastRetry)
	modifying := modifycontroller.NewModifyController(name, modify, s.client, resync, lastRetry, metadata, factory, retries())
	factory.Start(ctx.Done())
	go modifying.Run(workers, ctx, nil)
	growing.Run(workers, ctx, nil)
	return nil
}
