// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newStatusCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Show where the rollout of a workload is",
		RunE: func(command *cobra.Command, args []string) error {
			_, found, err := env.find(command.Context(), args)
			if err != nil {
				return err
			}
			fmt.Fprintln(env.Out, found)
			return nil
		},
	}
}
