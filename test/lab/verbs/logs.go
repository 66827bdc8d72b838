// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

// followPeriod is how often a log that is followed is looked at.
const followPeriod = 200 * time.Millisecond

func newLogs(opts *options) *cobra.Command {
	follow := false
	command := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print the log of a component, or the names of all logs",
		Long:  "Print the log of a component, or the names of all logs. Logs are kept when a lab is taken down.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := cluster.Canonical(opts.dir)
			if err != nil {
				return err
			}
			lab := &cluster.Lab{Dir: dir}
			if len(args) == 0 {
				return listLogs(command.OutOrStdout(), lab)
			}
			return printLog(command, lab, args[0], follow)
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing as the log grows")
	return command
}

func logNames(lab *cluster.Lab) ([]string, error) {
	paths, err := filepath.Glob(lab.Log("*"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no logs in %s", lab.Logs())
	}
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".log"))
	}
	return names, nil
}

func listLogs(out io.Writer, lab *cluster.Lab) error {
	names, err := logNames(lab)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Join(names, "\n"))
	return err
}

func printLog(command *cobra.Command, lab *cluster.Lab, name string, follow bool) error {
	file, err := os.Open(lab.Log(filepath.Base(name)))
	if errors.Is(err, os.ErrNotExist) {
		names, err := logNames(lab)
		if err != nil {
			return err
		}
		return fmt.Errorf("there is no log %q, there are %s", name, strings.Join(names, ", "))
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		if _, err := io.Copy(command.OutOrStdout(), file); err != nil || !follow {
			return err
		}
		if !sleep(command.Context(), followPeriod) {
			return nil
		}
	}
}

// sleep reports whether the time passed before the context ended.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
