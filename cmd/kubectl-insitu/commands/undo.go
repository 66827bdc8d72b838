// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

func newUndoCommand(e *environment) *cobra.Command {
	undo := change.Undo{}
	command := &cobra.Command{
		Use:   "undo KIND/NAME ...",
		Short: "Go back to an earlier revision, in place",
		Long: "Gives the workload the template of an earlier revision, and its claim templates, where they are part of it. " +
			"In the middle of a rollout that is the revision which most of the other pods have, and else the one before the present one.",
		Example: "  kubectl insitu undo statefulset.apps.kruise.io/db\n" +
			"  kubectl insitu undo deployment/web --to-revision 3",
	}
	c := newChanges(e, command)
	command.Flags().StringVar(&undo.ToRevision, "to-revision", "", "The number of the revision, or its name, as kubectl insitu history shows them")
	command.Flags().BoolVar(&undo.KeepClaims, "keep-claims", false, "Leave the volumeClaimTemplates as they are")
	command.RunE = func(command *cobra.Command, args []string) error {
		if undo.ToRevision == "0" {
			undo.ToRevision = "" // as with kubectl rollout undo
		}
		return c.run(command.Context(), args, func(ctx context.Context, writer *change.Writer, of target) (change.Result, error) {
			return writer.Undo(ctx, of.kind, of.key, undo)
		})
	}
	return command
}
