// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/test/lab/images"
)

func newBandwidth(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "bandwidth BYTES-PER-SECOND | " + images.FullBandwidth + " | " + images.NoBandwidth,
		Short: "Limit how fast the lab's registry serves images, to all nodes together, until the lab is started again",
		Long: "Limit how fast the lab's registry serves images, to all nodes together. " + images.NoBandwidth + " ends every connection, also those of \"lab load\".\n" +
			"The limit lasts until another one is set, or the lab is started again.",
		Example: "  lab bandwidth 20Mi\n" +
			"  lab bandwidth " + images.NoBandwidth + "    # as if there were no registry\n" +
			"  lab bandwidth " + images.FullBandwidth,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			lab, err := opts.load()
			if err != nil {
				return err
			}
			if err := lab.SetBandwidth(args[0]); err != nil {
				return err
			}
			narrator(command)("bandwidth of the registry: " + args[0])
			return nil
		},
	}
}
