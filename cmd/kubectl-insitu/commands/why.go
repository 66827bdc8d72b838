// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
)

func newWhyCommand(env *environment) *cobra.Command {
	format := render.Output{}
	command := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Say what a workload waits for, and what to do about it",
		Long: templates.LongDesc(`
			Says what a workload waits for, one line each: what blocks, since when, and what to do.
			The exit code is 0, also if something blocks.`),
		Example: templates.Examples(`
			kubectl insitu why statefulset/db`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: env.completeWorkloads,
		RunE: func(command *cobra.Command, args []string) error {
			return env.why(command.Context(), args, &format)
		},
	}
	format.AddFlag(command.Flags())
	return command
}

func (e *environment) why(ctx context.Context, args []string, format *render.Output) error {
	c, found, err := e.find(ctx, args)
	if err != nil {
		return err
	}
	told, err := c.Report(ctx, found)
	if err != nil {
		return err
	}
	if format.ForPrograms() {
		return format.Print(e.Out, told.Blockers, told.Ref)
	}
	return render.Why(e.Out, told, render.OptionsFor(e.Out, time.Now()))
}
