// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

// fieldManager is whom the API server notes as the owner of what these commands write.
const fieldManager = "kubectl-insitu"

// changes are the flags that all commands have which write workloads.
type changes struct {
	targets
	*environment
	dryRun  string
	manager string
	print   *genericclioptions.PrintFlags
}

func newChanges(e *environment, command *cobra.Command) *changes {
	c := &changes{environment: e, print: genericclioptions.NewPrintFlags("")}
	command.ValidArgsFunction = e.completeWorkloads
	c.addTo(command)
	c.print.AddFlags(command)
	command.Flags().StringVar(&c.dryRun, "dry-run", string(change.NoDryRun),
		`"none", "client" (print what would be sent) or "server" (have the API server judge it, and keep nothing)`)
	command.Flags().StringVar(&c.manager, "field-manager", fieldManager, "Who is noted as the owner of the fields that are written")
	return c
}

// write is how one workload is changed.
type write func(ctx context.Context, writer *change.Writer, of target) (change.Result, error)

// edit returns how workloads are changed by an edit.
func edit(e change.Edit) write {
	return func(ctx context.Context, writer *change.Writer, of target) (change.Result, error) {
		return writer.Write(ctx, of.kind, of.key, e)
	}
}

// run changes the workloads that are meant, and prints what came of each. One that cannot
// be changed keeps none of the others from it.
func (c *changes) run(ctx context.Context, args []string, write write) error {
	dryRun := change.DryRun(c.dryRun)
	if dryRun != change.NoDryRun && dryRun != change.ClientDryRun && dryRun != change.ServerDryRun {
		return fmt.Errorf("--dry-run: found %q, accepted are none, client and server", c.dryRun)
	}
	found, workloads, err := c.resolve(ctx, c.environment, args)
	if err != nil {
		return err
	}
	writer := &change.Writer{Client: found.Client, FieldManager: c.manager, DryRun: dryRun}
	var errs []error
	for _, of := range workloads {
		result, err := write(ctx, writer, of)
		if err == nil {
			err = c.tell(of, result, dryRun)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tell prints what came of a change: one line, or the object as -o says. Notes go to the
// error output.
func (c *changes) tell(of target, result change.Result, dryRun change.DryRun) error {
	for _, note := range result.Notes {
		fmt.Fprintf(c.ErrOut, "note: %s: %s\n", of, note)
	}
	if output := *c.print.OutputFormat; output == "" {
		fmt.Fprintf(c.Out, "%s %s%s\n", of, result.Words, suffix(result, dryRun))
		return nil
	}
	printer, err := c.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(result.Object, c.Out)
}

// suffix says that nothing was kept of a change.
func suffix(result change.Result, dryRun change.DryRun) string {
	switch {
	case !result.Changed:
		return ""
	case dryRun == change.ClientDryRun:
		return " (dry run)"
	case dryRun == change.ServerDryRun:
		return " (server dry run)"
	default:
		return ""
	}
}
