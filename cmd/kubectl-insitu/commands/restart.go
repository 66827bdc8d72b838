// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

func newRestartCommand(e *environment) *cobra.Command {
	var containers []string
	command := &cobra.Command{
		Use:   "restart KIND/NAME ...",
		Short: "Restart containers in place, within the budget",
		Long: "Restarts all containers that run, or those that are named, pod by pod within maxUnavailable; the pods stay. " +
			"The time is written to the template, as kubectl rollout restart does: it is a revision, rolled out as any other.",
		Example: "  kubectl insitu restart statefulset.apps.kruise.io/db\n" +
			"  kubectl insitu restart deployment/web -c proxy",
	}
	c := newChanges(e, command)
	command.Flags().StringSliceVarP(&containers, "container", "c", nil, "The containers to restart; all if there is none")
	command.RunE = func(command *cobra.Command, args []string) error {
		return c.run(command.Context(), args, edit(change.Restart(containers, time.Now())))
	}
	return command
}
