// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// volumesOptions are the flags of the command volumes.
type volumesOptions struct {
	*environment
	output        render.Output
	allNamespaces bool
}

func newVolumesCommand(e *environment) *cobra.Command {
	o := &volumesOptions{environment: e}
	command := &cobra.Command{
		Use:   "volumes",
		Short: "Show the volumes and snapshots that are kept of recreated claims",
		Long: templates.LongDesc(`
			Lists the volumes and snapshots that are kept of recreated claims: you pay for them.
			A volume can be given back to its claim, as the annotation insitu.dev/undo-recreate asks.

			STATE says why each is kept. Needed: its claim is being recreated from it, or waits for
			you. Held: until the time in UNTIL. Overdue: that time is over, and it has not gone.
			Retained: the StatefulSet says so. OnlyCopy: nothing else has its data. Orphaned: its
			StatefulSet is gone. Deleting: it goes. Only you delete what is Retained, OnlyCopy
			or Orphaned.`),
		Example: templates.Examples(`
			# What is kept in this namespace, and in all
			kubectl insitu volumes
			kubectl insitu volumes -A

			# What would be lost?
			kubectl insitu volumes discard volume/pvc-1 --dry-run=server

			# Delete a volume with its data, and keep a snapshot as one of your own
			kubectl insitu volumes discard volume/pvc-1
			kubectl insitu volumes release snapshot/data-db-0-8a8451a459`),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	o.output.AddFlag(command.Flags())
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "list what is kept in all namespaces")
	command.AddCommand(newDiscardCommand(e), newReleaseCommand(e))
	return command
}

func (o *volumesOptions) run(ctx context.Context) error {
	c, namespace, err := o.connect()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	now := time.Now()
	all, err := c.Kept(ctx, namespace, now)
	switch {
	case err != nil:
		return err
	case o.output.Format == "name":
		for _, kept := range all {
			fmt.Fprintln(o.Out, kept.Ref())
		}
		return nil
	case o.output.ForPrograms():
		return o.output.Print(o.Out, all)
	default:
		return o.table(namespace, all, now)
	}
}

// table prints a line for each, and what they come to.
func (o *volumesOptions) table(namespace string, all []report.KeptStorage, now time.Time) error {
	if len(all) == 0 {
		where := "in namespace " + namespace
		if namespace == "" {
			where = "in any namespace"
		}
		fmt.Fprintln(o.Out, "Nothing is kept of recreated claims "+where)
		return nil
	}
	table := printers.GetNewTabWriter(o.Out)
	head := "NAME\tCLAIM\tSTATEFULSET\tSIZE\tCLASS\tSTATE\tSINCE\tUNTIL"
	if namespace == "" {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(table, head)
	for _, kept := range all {
		if namespace == "" {
			fmt.Fprintf(table, "%s\t", kept.Namespace)
		}
		until := "-"
		if !kept.Until.IsZero() {
			until = kept.Until.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", kept.Ref(), kept.Claim, orNone(kept.StatefulSet), kept.Size.String(), orNone(kept.Class),
			kept.State, age(kept.Since, now), until)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.Out, sum(all))
	return nil
}

// sum says how much is kept. What a snapshot costs is known to its driver only.
func sum(all []report.KeptStorage) string {
	volumes, snapshots, capacity := 0, 0, resource.Quantity{}
	for _, kept := range all {
		if kept.Kind == report.KeptVolume {
			volumes++
			capacity.Add(kept.Size)
		} else {
			snapshots++
		}
	}
	return fmt.Sprintf("%d volumes with %s, and %d snapshots", volumes, capacity.String(), snapshots)
}

// keptAction are the flags of the commands that discard or release what is kept.
type keptAction struct {
	*environment
	yes    bool
	dryRun string
	// verb is what is done, done what was done, and loses says what is lost with one.
	verb, done string
	loses      func(report.KeptStorage) string
	write      func(context.Context, client.Client, report.KeptStorage, ...client.PatchOption) error
}

func newDiscardCommand(e *environment) *cobra.Command {
	l := &keptAction{
		environment: e, verb: "discard", done: "discarded", write: change.Discard,
		loses: func(kept report.KeptStorage) string { return kept.Loses },
	}
	return l.command(&cobra.Command{
		Use:   "discard NAME ...",
		Short: "Delete volumes and snapshots that are kept, with their data",
		Long: templates.LongDesc(`
			Has Kubernetes delete volumes and snapshots with what their drivers store of them. It says
			first what is lost with each, and asks. A volume or snapshot that its claim needs is not
			deleted.`),
	})
}

func newReleaseCommand(e *environment) *cobra.Command {
	l := &keptAction{
		environment: e, verb: "release", done: "released", write: change.Release,
		loses: func(kept report.KeptStorage) string {
			if kept.Kind == report.KeptVolume {
				return fmt.Sprintf("it stays with its data until you delete it, and claim %s cannot have it back any more", kept.Kept.Claim)
			}
			return "it stays with its data until you delete it"
		},
	}
	return l.command(&cobra.Command{
		Use:   "release NAME ...",
		Short: "Make volumes and snapshots that are kept your own",
		Long: templates.LongDesc(`
			Takes the marks of Insitu off volumes and snapshots: they stay with their data, Insitu
			neither gives them back nor deletes them, and lists them no more. A volume stays Released,
			with the reclaim policy Retain.`),
	})
}

func (l *keptAction) command(command *cobra.Command) *cobra.Command {
	command.Args = cobra.MinimumNArgs(1)
	command.RunE = func(command *cobra.Command, args []string) error { return l.run(command.Context(), args) }
	command.Flags().BoolVarP(&l.yes, "yes", "y", false, "do not ask")
	command.Flags().StringVar(&l.dryRun, "dry-run", string(change.NoDryRun), `"none", or "server" (say what is lost, have the API server judge it, and keep nothing)`)
	return command
}

func (l *keptAction) run(ctx context.Context, names []string) error {
	var options []client.PatchOption
	if dryRun := change.DryRun(l.dryRun); dryRun == change.ServerDryRun {
		options = append(options, client.DryRunAll)
	} else if dryRun != change.NoDryRun {
		return fmt.Errorf("--dry-run: found %q, accepted are none and server", l.dryRun)
	}
	c, namespace, err := l.connect()
	if err != nil {
		return err
	}
	chosen, err := chooseUnneeded(ctx, c, namespace, names)
	if err != nil {
		return err
	}
	for _, kept := range chosen {
		fmt.Fprintf(l.Out, "%s of claim %s, %s: %s\n", kept.Ref(), kept.Claim, kept.Size.String(), l.loses(kept))
	}
	if len(options) == 0 && !l.yes {
		if err := l.confirm(); err != nil {
			return err
		}
		// Another user may have asked for one of them meanwhile.
		if chosen, err = chooseUnneeded(ctx, c, namespace, names); err != nil {
			return err
		}
	}
	var errs []error
	for _, kept := range chosen {
		if err := l.write(ctx, c.Client, kept, options...); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", l.verb, kept.Ref(), cluster.Explain(err)))
			continue
		}
		suffix := ""
		if len(options) > 0 {
			suffix = " (server dry run)"
		}
		fmt.Fprintf(l.Out, "%s %s%s\n", kept.Ref(), l.done, suffix)
	}
	return errors.Join(errs...)
}

// chooseUnneeded returns what is kept under names, with what is lost with all of it, if none of it
// is needed.
func chooseUnneeded(ctx context.Context, c *cluster.Cluster, namespace string, names []string) ([]report.KeptStorage, error) {
	all, err := c.Kept(ctx, namespace, time.Now())
	if err != nil {
		return nil, err
	}
	chosen, err := choose(all, namespace, names)
	if err != nil {
		return nil, err
	}
	for _, kept := range chosen {
		if err := change.EnsureUnneeded(kept); err != nil {
			return nil, err
		}
	}
	return report.LosesTogether(chosen, all), nil
}

// choose returns what is kept under names, as the list prints them.
func choose(all []report.KeptStorage, namespace string, names []string) ([]report.KeptStorage, error) {
	chosen := make([]report.KeptStorage, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(all, func(kept report.KeptStorage) bool { return kept.Ref() == name })
		if i < 0 {
			return nil, fmt.Errorf("found %q: accepted are the names that kubectl insitu volumes -n %s prints, such as volume/pvc-1", name, namespace)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// confirm asks whether to go on.
func (l *keptAction) confirm() error {
	if file, ok := l.In.(*os.File); ok && !render.IsTerminal(file) {
		return fmt.Errorf("found no terminal to ask at: --yes is needed to %s", l.verb)
	}
	fmt.Fprintf(l.Out, "Go on, and %s? (y/N) ", l.verb)
	answer, err := bufio.NewReader(l.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return errors.New("nothing was written: it was not confirmed")
	}
	return nil
}
