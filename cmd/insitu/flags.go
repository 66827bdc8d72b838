// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
)

// flags is what the command line says. All else is in the configuration file.
type flags struct {
	// config is the path of the configuration file; empty for the defaults.
	config string
	// version asks for the version instead of a manager, help for the usage,
	// which has been printed already.
	version, help bool
	// check asks whether a manager has what it needs instead of running one.
	check bool
	// releaseHeld asks for the release of all held workloads instead of a manager.
	releaseHeld bool
}

// parseFlags reads the command line. Usage goes to output if it is asked for.
func parseFlags(args []string, output io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("insitu", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "path of the configuration `file` (InsituConfiguration); without it, the defaults apply")
	set.BoolVar(&f.releaseHeld, "release-held", false,
		"release the Deployments, StatefulSets and DaemonSets that are held, so that Kubernetes goes on with them, and exit")
	set.BoolVar(&f.check, "check", false,
		"look with the rights of this account whether the manager has what it needs and whether one leads, say so, and exit")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	clientconfig.RegisterFlags(set)

	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(output)
		set.Usage()
		f.help = true

		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("parse flags: %w", err)
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("parse flags: found argument %q: accepted are flags only", set.Arg(0))
	}

	return f, nil
}
