// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command insitu is the manager: it runs the controllers against one cluster.
// This package only wires them together.
package main

import (
	"context"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "insitu:", err)
		os.Exit(1)
	}
}

// run does what the command line asks for, until it is done or ctx ends.
func run(ctx context.Context, args []string) error {
	flags, err := parseFlags(args, os.Stderr)
	if err != nil {
		return err
	}
	switch {
	case flags.help:
		return nil
	case flags.version:
		fmt.Println(thisBuild().Line("insitu"))
		return nil
	}
	config, err := configv1alpha1.Load(flags.config)
	if err != nil {
		return err
	}
	if err := nameOwnNamespace(config, namespaceFile); err != nil {
		return err
	}
	if flags.check {
		return runCheck(ctx, config, os.Stdout)
	}
	if flags.releaseHeld {
		return releaseHeld(ctx, config, os.Stdout)
	}

	return runManager(ctx, config)
}
