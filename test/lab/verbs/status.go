// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

// statusTimeout bounds the wait for a supervisor that hangs.
const statusTimeout = time.Minute

func newStatus(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the programs of a lab; fails if it is not up",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), statusTimeout)
			defer cancel()
			parts, err := lab.Status(ctx)
			if err != nil {
				return err
			}
			if len(parts) == 0 {
				return errors.New("the lab's processes are gone: start them again with \"lab up\"")
			}
			return printStatus(command.OutOrStdout(), lab, parts)
		},
	}
}

func printStatus(out io.Writer, lab *cluster.Lab, parts []cluster.Part) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "%s in %s, kubeconfig %s\n\n", lab.Spec, lab.Dir, lab.Kubeconfig())
	fmt.Fprintln(table, "NODE\tPROGRAM\tSTATE\tRESTARTS\tSINCE\tLAST EXIT")
	for _, part := range parts {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n",
			part.Node, part.Name, part.State, part.Restarts, duration.HumanDuration(time.Since(part.Since)), part.LastExit)
	}
	return table.Flush()
}

func newKubeconfig(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the lab's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), lab.Kubeconfig())
			return nil
		},
	}
}
