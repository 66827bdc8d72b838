// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo updates workloads in place on the cluster that KUBECONFIG names, and
// shows what became of their pods: a StatefulSet of apps.kruise.io, and a plain
// Deployment. It exits with 0 only if every pod is the one that it was, restarted
// once by each update, and serves the new page.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1) //nolint:gocritic // the signal handler ends with the process
	}
}

func run(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	d, err := newDemo(config, os.Stdout)
	if err != nil {
		return err
	}
	return d.run(ctx)
}
