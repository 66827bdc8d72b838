// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

func newNode(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "node",
		Short: "Kill and start real nodes",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(
		newNodeVerb(opts, "kill NAME", "End a node as a power cut would, with all that runs on it",
			func(ctx context.Context, lab *cluster.Lab, name string, say func(string)) error {
				if err := lab.KillNode(ctx, name); err != nil {
					return err
				}
				say(name + " is dead")
				return nil
			}),
		newNodeVerb(opts, "start NAME", "Bring back a node that was killed, and wait until it is ready",
			func(ctx context.Context, lab *cluster.Lab, name string, say func(string)) error {
				if err := lab.StartNode(ctx, name, say); err != nil {
					return err
				}
				say(name + " is ready")
				return nil
			}),
	)
	return command
}

func newNodeVerb(
	opts *options, use, short string, act func(ctx context.Context, lab *cluster.Lab, name string, say func(string)) error,
) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			return act(command.Context(), lab, args[0], narrator(command))
		},
	}
}
