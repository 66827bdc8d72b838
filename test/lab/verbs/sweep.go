// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/cluster"
)

func newSweep() *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Clear up what was left by labs and tests that were killed",
		Long: "Clear up what was left by labs and tests that were killed. \"up\" does so first.\n\n" +
			"Taken down are labs whose folder is gone, those that never were ready, and those of tests that ended without taking them down.\n" +
			"A lab that was brought up by hand keeps its data: if all its processes were killed, it loses nothing but what it has outside of its folder,\n" +
			"and \"up\" goes on with it. If it runs, it is left alone.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return cluster.Sweep(narrator(command), "")
		},
	}
}
