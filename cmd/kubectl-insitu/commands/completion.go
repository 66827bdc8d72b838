// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeWorkloads offers the workloads of the namespace that the operator drives. What
// cannot be read is not offered.
func (e *environment) completeWorkloads(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, namespace, err := e.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, found := range c.Names(command.Context(), namespace) {
		for _, name := range []string{found.String(), strings.ToLower(found.Kind) + "/" + found.Name} {
			if strings.HasPrefix(name, begun) {
				names = append(names, name)
				break
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
