// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// statusOptions are the flags of the command status.
type statusOptions struct {
	*environment
	output         render.Output
	watch          bool
	timeout        time.Duration
	successOnPause bool
	all            bool
	allNamespaces  bool
}

func newStatusCommand(env *environment) *cobra.Command {
	o := &statusOptions{environment: env}
	command := &cobra.Command{
		Use:   "status [KIND/NAME]",
		Short: "Show where the rollout of a workload is",
		Long: templates.LongDesc(`
			Shows a workload with its revisions and pods: where each pod is, what it waits for, and
			what it is to become. Without an argument, it lists the workloads of the namespace.

			The exit code is 0 for Healthy, 3 for Progressing, 4 for Paused, 5 for Stalled and 6 for
			Unknown; with --watch, 7 if --timeout passes before the workload is Healthy, Paused or
			Stalled. An error is 1.`),
		Example: templates.Examples(`
			# Where is it?
			kubectl insitu status statefulset/db

			# Look on until it has come to rest
			kubectl insitu status deployment/web --watch

			# In a pipeline: wait 10 minutes at most; a canary that is reached is a success
			kubectl insitu status deployment/web --watch --timeout=10m --success-on-pause`),
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.list(command.Context())
			}
			return o.run(command.Context(), args)
		},
		ValidArgsFunction: env.completeWorkloads,
	}
	o.output.AddFlag(command.Flags())
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "look on until the workload is Healthy, Paused or Stalled")
	command.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to look on at most; 0 is without limit")
	command.Flags().BoolVar(&o.successOnPause, "success-on-pause", false, "exit with 0 also if the workload is Paused")
	command.Flags().BoolVar(&o.all, "all", false, "show every pod, also where many are alike")
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "without an argument: list the workloads of all namespaces")
	return command
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	c, found, err := o.find(ctx, args)
	if err != nil {
		return err
	}
	if o.watch {
		return o.look(ctx, c, found)
	}
	told, err := c.Report(ctx, found)
	if err != nil {
		return err
	}
	if err := o.show(told); err != nil {
		return err
	}
	return o.exit(told.Phase)
}

// show prints a report.
func (o *statusOptions) show(told report.Workload) error {
	if o.output.ForPrograms() {
		return o.output.Print(o.Out, told, told.Ref)
	}
	return render.Tree(o.Out, told, o.rendering())
}

func (o *statusOptions) rendering() render.Options {
	options := render.OptionsFor(o.Out, time.Now())
	options.All = o.all
	return options
}

// exit returns the exit code of a phase.
func (o *statusOptions) exit(phase report.Phase) error {
	switch phase {
	case report.Healthy:
		return nil
	case report.Progressing:
		return exitError(ExitProgressing)
	case report.Paused:
		if o.successOnPause {
			return nil
		}
		return exitError(ExitPaused)
	case report.Stalled:
		return exitError(ExitStalled)
	case report.Unknown:
		return exitError(ExitUnknown)
	default:
		return exitError(ExitUnknown)
	}
}

// list prints a line for each workload.
func (o *statusOptions) list(ctx context.Context) error {
	c, namespace, err := o.connect()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	all, err := c.List(ctx, namespace)
	if err != nil {
		return err
	}
	if o.output.ForPrograms() {
		return o.output.Print(o.Out, all, refsOf(all)...)
	}
	if err := o.table(namespace, all); err != nil {
		return err
	}
	notHeld, err := c.NotHeld(ctx, namespace, time.Now())
	if err != nil || len(notHeld) == 0 {
		return err
	}
	fmt.Fprintf(o.Out, "\n%s: %s\n  %s\n", cluster.ReasonNotHeld, strings.Join(notHeld, "\n"+cluster.ReasonNotHeld+": "), report.Advice(cluster.ReasonNotHeld))
	return nil
}

func refsOf(all []report.Workload) []report.Ref {
	names := make([]report.Ref, len(all))
	for i := range all {
		names[i] = all[i].Ref
	}
	return names
}

func (o *statusOptions) table(namespace string, all []report.Workload) error {
	if len(all) == 0 {
		where := "in namespace " + namespace
		if namespace == "" {
			where = "in any namespace"
		}
		fmt.Fprintf(o.ErrOut, "No workloads of Insitu, and none with the label insitu.dev/update-policy, were found %s.\n", where)
		return nil
	}
	table := printers.GetNewTabWriter(o.Out)
	if namespace == "" {
		fmt.Fprint(table, "NAMESPACE\t")
	}
	fmt.Fprintln(table, "WORKLOAD\tPHASE\tUPDATED\tREADY\tWAITS FOR")
	for i := range all {
		w := &all[i]
		if namespace == "" {
			fmt.Fprint(table, w.Namespace+"\t")
		}
		fmt.Fprintf(table, "%s\t%s\t%d/%d\t%d/%d\t%s\n",
			w.Ref, w.Phase, w.Updated, w.Replicas, w.Ready, w.Replicas, waitsFor(w))
	}
	return table.Flush()
}

// waitsFor says in a few words what a workload waits for.
func waitsFor(w *report.Workload) string {
	const most = 90
	if len(w.Blockers) == 0 {
		return ""
	}
	worst := w.Blockers[0]
	words := []rune(worst.Reason + ": " + worst.Message)
	if worst.Pod != "" {
		words = []rune("pod " + worst.Pod + ": " + string(words))
	}
	if len(words) > most {
		return string(words[:most-1]) + "…"
	}
	return string(words)
}
