// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command pictures makes the pictures of README.md from the cluster that KUBECONFIG names: a
// recording of a terminal in which a Deployment is updated in place, and the dashboard during
// rollouts, light and dark. hack/pictures runs it on a lab of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	target := flag.String("target", "docs/pictures", "where the pictures are written")
	browser := flag.String("chromium", "", "the browser that takes the pictures of the dashboard")
	flag.Parse()
	if err := run(ctx, *target, *browser); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1) //nolint:gocritic // the signal handler ends with the process
	}
}

func run(ctx context.Context, target, browser string) error {
	fmt.Println("Recording a terminal")
	recording, err := record(ctx, rollout)
	if err != nil {
		return fmt.Errorf("record a terminal: %w", err)
	}
	if err := os.WriteFile(filepath.Join(target, "rollout.svg"), render(recording), 0o644); err != nil { //nolint:gosec // everybody may see a picture
		return fmt.Errorf("write a picture: %w", err)
	}
	fmt.Println("Taking pictures of the dashboard")
	if err := photograph(ctx, target, browser); err != nil {
		return fmt.Errorf("take pictures of the dashboard: %w", err)
	}
	return nil
}
