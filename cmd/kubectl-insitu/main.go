// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-insitu is a plugin of kubectl: it shows where the rollouts are that
// go in place, says what they wait for, and steers them.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/insitu-dev/insitu/cmd/build"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(commands.Run(ctrl.SetupSignalHandler(), os.Args[1:], streams, build.This(version)))
}
