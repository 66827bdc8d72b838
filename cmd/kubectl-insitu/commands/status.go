// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

func newStatusCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Show where the rollout of a workload is",
		RunE: func(command *cobra.Command, args []string) error {
			c, found, err := env.find(command.Context(), args)
			if err != nil {
				return err
			}
			told, err := c.Report(command.Context(), found)
			if err != nil {
				return err
			}
			raw, err := yaml.Marshal(told)
			fmt.Fprintln(env.Out, string(raw))
			return err
		},
	}
}
