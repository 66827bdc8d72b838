// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

func newHistoryCommand(e *environment) *cobra.Command {
	h := &historyCommand{environment: e}
	command := &cobra.Command{
		Use:   "history KIND/NAME ...",
		Short: "Show the revisions of a workload",
		Long: "Shows the revisions that a workload can go back to, the oldest first: their images, why they were made, and how many pods have them. " +
			"A held Deployment is updated to a revision that gets its number when the update is done.",
		Example: "  kubectl insitu history statefulset.apps.kruise.io/db\n" +
			"  kubectl insitu history deployment/web --revision 3     # the template of revision 3",
	}
	command.ValidArgsFunction = e.completeWorkloads
	h.addTo(command)
	command.Flags().StringVar(&h.revision, "revision", "", "Show the template of this revision: its number, or its name")
	command.Flags().StringVarP(&h.output, "output", "o", "", "json or yaml")
	command.RunE = func(command *cobra.Command, args []string) error { return h.run(command.Context(), args) }
	return command
}

// historyCommand shows revisions.
type historyCommand struct {
	targets
	*environment
	revision, output string
}

func (h *historyCommand) run(ctx context.Context, args []string) error {
	if h.output != "" && h.output != "json" && h.output != "yaml" {
		return fmt.Errorf("-o: found %q, accepted are json and yaml", h.output)
	}
	c, workloads, err := h.resolve(ctx, h.environment, args)
	if err != nil {
		return err
	}
	for _, of := range workloads {
		w, err := change.Read(ctx, c.Client, of.kind, of.key)
		if err != nil {
			return err
		}
		history, err := change.ReadHistory(ctx, c.Client, w)
		if err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
		notes, err := countPods(ctx, history, c.Client)
		if err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
		if h.revision != "" {
			if history, err = history.Named(h.revision); err != nil {
				return fmt.Errorf("%s: %w", of, err)
			}
		}
		said := history.Report()
		said.Notes = notes
		if err := h.print(of, said); err != nil {
			return err
		}
	}
	return nil
}

// countPods counts the pods of each revision, if the user may see them.
func countPods(ctx context.Context, history *change.History, reader client.Reader) ([]string, error) {
	err := history.CountPods(ctx, reader)
	if apierrors.IsForbidden(err) {
		return []string{"pods are not counted: " + err.Error()}, nil
	}
	return nil, err
}

func (h *historyCommand) print(of target, said report.History) error {
	switch {
	case h.output != "":
		return printAs(h.output, said, h.Out)
	case h.revision != "":
		return printTemplate(said.Revisions[0], h.Out)
	default:
		fmt.Fprintln(h.Out, of)
		return printHistory(said, time.Now(), h.Out)
	}
}

// printAs prints a value as json or yaml.
func printAs(format string, value any, out io.Writer) error {
	raw, err := yaml.Marshal(value)
	if err == nil && format == "json" {
		raw, err = json.MarshalIndent(value, "", "    ")
		raw = append(raw, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(raw)
	return err
}

// printTemplate prints what a revision says, as it is in a manifest.
func printTemplate(revision report.RecordedRevision, out io.Writer) error {
	spec := map[string]any{"template": revision.Template}
	if len(revision.VolumeClaimTemplates) > 0 {
		spec["volumeClaimTemplates"] = revision.VolumeClaimTemplates
	}
	fmt.Fprintf(out, "# revision %s: %s\n", number(revision), revision.Name)
	return printAs("yaml", spec, out)
}

// printHistory prints a line for each revision.
func printHistory(said report.History, now time.Time, out io.Writer) error {
	if len(said.Revisions) == 0 {
		fmt.Fprintln(out, "no revision has been recorded yet")
	} else {
		table := printers.GetNewTabWriter(out)
		fmt.Fprintln(table, "REVISION\tAGE\tPODS\tSTATE\tNAME\tIMAGES\tCHANGE-CAUSE")
		for _, revision := range said.Revisions {
			pods := strconv.Itoa(int(revision.Pods))
			if len(said.Notes) > 0 {
				pods = "?"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", number(revision), age(revision.CreationTimestamp, now), pods, state(revision),
				revision.Name, strings.Join(revision.Images, ","), orNone(revision.ChangeCause))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, note := range said.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	return nil
}

// number returns the number of a revision, if it has one.
func number(revision report.RecordedRevision) string {
	if revision.Number == 0 {
		return "-"
	}
	return strconv.FormatInt(revision.Number, 10)
}

// state says which revision pods come from, and which they get to, in the words of the
// status of a StatefulSet.
func state(revision report.RecordedRevision) string {
	switch {
	case revision.IsCurrent:
		return "current"
	case revision.IsUpdate:
		return "update"
	default:
		return ""
	}
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "?"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
