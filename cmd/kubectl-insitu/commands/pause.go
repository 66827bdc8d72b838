// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

func newPauseCommand(e *environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "pause KIND/NAME ...",
		Short: "Keep pods from starting their update",
		Long: "Keeps pods from starting their update. Those that have started it end it; pods are scaled, and lost ones replaced, as ever. " +
			"Writes paused in the update strategy, or the annotation insitu.dev/paused of a Deployment, StatefulSet or DaemonSet of Kubernetes.",
		Example: "  kubectl insitu pause statefulset.apps.kruise.io/db",
	}
	c := newChanges(e, command)
	command.RunE = func(command *cobra.Command, args []string) error {
		return c.run(command.Context(), args, edit(change.Pause()))
	}
	return command
}

func newResumeCommand(e *environment) *cobra.Command {
	command := &cobra.Command{
		Use:     "resume KIND/NAME ...",
		Short:   "End a pause",
		Long:    "Ends a pause, also that of a user who has run kubectl rollout pause.",
		Example: "  kubectl insitu resume statefulset.apps.kruise.io/db",
	}
	c := newChanges(e, command)
	command.RunE = func(command *cobra.Command, args []string) error {
		return c.run(command.Context(), args, edit(change.Resume()))
	}
	return command
}
