// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command sidecars is the Kubernetes side of the lab's storage: the programs
// that turn claims and snapshots into calls of a CSI driver. Called by the name
// of one of them, it is that program. Each is made of the library of the
// original, whose main package cannot be imported, with what a lab has no use
// for left out: leader election, metrics and most flags.
//
// They are not in the lab's other program, because they register feature gates
// that Kubernetes has under the same names, which ends either of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// What failed is tried again after firstRetry, and after twice the time
	// each further time, up to lastRetry. Clusters wait for minutes; who waits
	// in a lab is a test.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 4 * time.Second
	// changeTimeout is how long the driver may take to change a volume.
	changeTimeout = 3 * time.Second
	// copyTimeout is how long the driver may take for a volume or a snapshot,
	// whose data may be copied.
	copyTimeout = 30 * time.Second
	// resync is how often all objects are looked at again.
	resync = 10 * time.Minute
	// workers is how many objects each program works on at a time.
	workers = 20
	// API requests a second, so that claims of a whole test run do not queue.
	requests, requestBurst = 100, 200
)

// sidecar is what the programs are started with.
type sidecar struct {
	config *rest.Config
	client kubernetes.Interface
	// address is the socket of the driver's controller.
	address string
}

// programs maps the name of a program to its main function, which returns when
// the context ends.
var programs = map[string]func(context.Context, *sidecar) error{
	"csi-provisioner":     runProvisioner,
	"csi-resizer":         runResizer,
	"csi-snapshotter":     runSnapshotter,
	"snapshot-controller": runSnapshotController,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		klog.FromContext(ctx).Error(err, "Ending")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// run runs the named program with the flags.
func run(ctx context.Context, name string, args []string) error {
	program, ok := programs[name]
	if !ok {
		return fmt.Errorf("there is no program %q here", name)
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	address := flags.String("csi-address", "", "socket of the driver's controller")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = requests, requestBurst
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(core)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return program(ctx, &sidecar{config: config, client: client, address: *address})
}

func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
}
