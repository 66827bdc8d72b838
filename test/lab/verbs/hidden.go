// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

// newSupervise is the first process of a lab, or of a node.
func newSupervise(opts *options) *cobra.Command {
	node := ""
	command := hidden(opts, "supervise", func(ctx context.Context, lab *cluster.Lab) error {
		if node != "" {
			return lab.SuperviseNode(ctx, node)
		}
		return lab.Supervise(ctx)
	})
	command.Flags().StringVar(&node, "node", "", "name of the node to supervise")
	return command
}

// newRegistry is the program that serves the lab's images.
func newRegistry(opts *options) *cobra.Command {
	return hidden(opts, "registry", func(ctx context.Context, lab *cluster.Lab) error {
		return lab.ServeRegistry(ctx)
	})
}

// newStorage is the program that makes volumes, or mounts them on a node.
func newStorage(opts *options) *cobra.Command {
	node := ""
	command := hidden(opts, "storage", func(ctx context.Context, lab *cluster.Lab) error {
		if node != "" {
			return lab.RunNodeStorage(ctx, node)
		}
		return lab.RunStorage(ctx)
	})
	command.Flags().StringVar(&node, "node", "", "name of the node to mount on")
	return command
}

// newSimulatedNodes is the program that stands in for nodes.
func newSimulatedNodes(opts *options) *cobra.Command {
	return hidden(opts, "simulated-nodes", func(ctx context.Context, lab *cluster.Lab) error {
		return lab.RunSimulatedNodes(ctx)
	})
}

// hidden is a verb that is a program of a lab, and not for users.
func hidden(opts *options, use string, run func(context.Context, *cluster.Lab) error) *cobra.Command {
	return &cobra.Command{
		Use:    use,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			return run(logTo(command.Context()), lab)
		},
	}
}
