// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	commoncontroller "github.com/kubernetes-csi/external-snapshotter/v8/pkg/common-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/metrics"
	sidecarcontroller "github.com/kubernetes-csi/external-snapshotter/v8/pkg/sidecar-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/snapshotter"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// runSnapshotter makes the snapshots that snapshot-controller has asked for.
func runSnapshotter(ctx context.Context, s *sidecar) error {
	driver, err := connection.Connect(ctx, s.address, csimetrics.NewCSIMetricsManager(""),
		connection.OnConnectionLoss(connection.ExitOnConnectionLoss()))
	if err != nil {
		return fmt.Errorf("reach driver: %w", err)
	}
	name, err := rpc.GetDriverName(ctx, driver)
	if err != nil {
		return fmt.Errorf("find name of driver: %w", err)
	}
	snapshots, err := snapshotClient(ctx, s)
	if err != nil {
		return err
	}
	factory := snapshotinformers.NewSharedInformerFactory(snapshots, resync)
	controller := sidecarcontroller.NewCSISnapshotSideCarController(
		snapshots, s.client, name,
		factory.Snapshot().V1().VolumeSnapshotContents(), factory.Snapshot().V1().VolumeSnapshotClasses(),
		snapshotter.NewSnapshotter(driver), nil, copyTimeout, resync,
		"snapshot", -1, "", -1, true, retries(), false, nil, nil, retries(),
	)
	factory.Start(ctx.Done())
	controller.Run(workers, ctx.Done(), nil)
	return nil
}

// runSnapshotController pairs snapshots with their contents, for all drivers.
func runSnapshotController(ctx context.Context, s *sidecar) error {
	snapshots, err := snapshotClient(ctx, s)
	if err != nil {
		return err
	}
	factory := snapshotinformers.NewSharedInformerFactory(snapshots, resync)
	core := informers.NewSharedInformerFactory(s.client, resync)
	controller := commoncontroller.NewCSISnapshotCommonController(
		snapshots, s.client,
		factory.Snapshot().V1().VolumeSnapshots(), factory.Snapshot().V1().VolumeSnapshotContents(),
		factory.Snapshot().V1().VolumeSnapshotClasses(), nil, nil, nil,
		core.Core().V1().PersistentVolumeClaims(), core.Core().V1().PersistentVolumes(), nil,
		metrics.NewMetricsManager(), resync, retries(), retries(), retries(), retries(), false, true, false,
	)
	factory.Start(ctx.Done())
	core.Start(ctx.Done())
	controller.Run(workers, ctx.Done(), nil)
	return nil
}

// snapshotClient returns a client once the API server knows of snapshots.
// Caches that are started before may take half a minute to notice.
func snapshotClient(ctx context.Context, s *sidecar) (*versioned.Clientset, error) {
	client, err := versioned.NewForConfig(s.config)
	if err != nil {
		return nil, fmt.Errorf("make client for snapshots: %w", err)
	}
	// Events are recorded for objects of the scheme only.
	if err := snapshotscheme.AddToScheme(clientgoscheme.Scheme); err != nil {
		return nil, fmt.Errorf("add kinds of snapshots: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		one := metav1.ListOptions{Limit: 1}
		_, err1 := client.SnapshotV1().VolumeSnapshots("").List(ctx, one)
		_, err2 := client.SnapshotV1().VolumeSnapshotClasses().List(ctx, one)
		_, err3 := client.SnapshotV1().VolumeSnapshotContents().List(ctx, one)
		return err1 == nil && err2 == nil && err3 == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for kinds of snapshots: %w", err)
	}
	return client, nil
}
