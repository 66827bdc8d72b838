// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

func newPromoteCommand(e *environment) *cobra.Command {
	promotion := change.Promotion{}
	command := &cobra.Command{
		Use:   "promote KIND/NAME ...",
		Short: "Lower the partition, so that more pods are updated",
		Long: "Lowers the partition, which keeps pods at their revision: to 0, so that all are updated, or as the flags say. " +
			"It never raises it. Writes partition of the update strategy, or the annotation insitu.dev/partition of a Deployment or DaemonSet of Kubernetes.",
		Example: "  kubectl insitu promote cloneset/web            # all pods\n" +
			"  kubectl insitu promote cloneset/web --by 25%   # a quarter of the pods more\n" +
			"  kubectl insitu promote cloneset/web --to 2     # all but 2\n" +
			"  kubectl insitu promote daemonset.apps.kruise.io/agent --to 50%   # the pods of half of the nodes",
	}
	c := newChanges(e, command)
	command.Flags().StringVar(&promotion.To, "to", "", "How many pods stay as they are: a number, or a percentage")
	command.Flags().StringVar(&promotion.By, "by", "", "How many pods more are updated: a number, or a percentage")
	command.MarkFlagsMutuallyExclusive("to", "by")
	command.RunE = func(command *cobra.Command, args []string) error {
		return c.run(command.Context(), args, edit(change.Promote(promotion)))
	}
	return command
}
