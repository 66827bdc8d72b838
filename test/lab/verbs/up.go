// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

// calledAs is the variable that says how the user called the lab: it is a script that runs this
// program.
const calledAs = "INSITU_LAB_CALLED_AS"

func newUp(opts *options) *cobra.Command {
	spec := cluster.DefaultSpec
	fresh := false
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring a lab up, or back up",
		Long: "Bring a lab up and wait until pods can run in it.\n\n" +
			"A lab that is up stays as it is, but with --fresh. If it cannot be brought up, or on Ctrl-C, nothing of it is left but its logs.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			wanted := cluster.UpOptions{Spec: &spec, Fresh: fresh}
			if !command.Flags().Changed("nodes") && !command.Flags().Changed("simulated-nodes") {
				wanted.Spec = nil
			}
			return up(command, opts, wanted)
		},
	}
	command.Flags().IntVar(&spec.Nodes, "nodes", spec.Nodes, "number of real nodes, which need Linux and root")
	command.Flags().IntVar(&spec.SimulatedNodes, "simulated-nodes", spec.SimulatedNodes,
		"number of simulated nodes, which run no containers and need no rights")
	command.Flags().BoolVar(&fresh, "fresh", false, "take down the lab that is there, if there is one, and begin with a new one")
	return command
}

func up(command *cobra.Command, opts *options, wanted cluster.UpOptions) error {
	var err error
	if wanted.Dir, err = cluster.Canonical(opts.dir); err != nil {
		return err
	}
	if wanted.ImageCache, err = cacheDir(); err != nil {
		return err
	}
	wanted.Say = narrator(command)
	lab, err := cluster.Up(command.Context(), wanted)
	if err != nil {
		return fmt.Errorf("bring up a lab: %w", err)
	}
	command.Printf("\nUse it:    export KUBECONFIG=%s\nTake down: %s down --dir %s\n", lab.Kubeconfig(), cmp.Or(os.Getenv(calledAs), command.Root().Name()), opts.dir)
	return nil
}

func newDown(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Take a lab down and leave nothing of it but its logs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			dir, err := cluster.Canonical(opts.dir)
			if err != nil {
				return err
			}
			say := narrator(command)
			found, err := cluster.Down(dir)
			switch {
			case err != nil:
				return fmt.Errorf("take down the lab in %s: %w", dir, err)
			case !found:
				say("There is no lab in " + dir)
			default:
				say("The lab in " + dir + " is down")
			}
			return nil
		},
	}
}
