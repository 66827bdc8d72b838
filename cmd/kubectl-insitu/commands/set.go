// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
)

func newSetCommand(e *environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "set",
		Short: "Change images or resources of containers",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newSetImageCommand(e), newSetResourcesCommand(e))
	return command
}

func newSetImageCommand(e *environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "image KIND/NAME ... CONTAINER=IMAGE ...",
		Short: "Change images of containers",
		Long:  "Changes images in the template, also those of sidecars and init containers. *=IMAGE is for all of them.",
		Example: "  kubectl insitu set image statefulset.apps.kruise.io/db postgres=postgres:17.2\n" +
			"  kubectl insitu set image deployment/web deployment/api proxy=envoyproxy/envoy:v1.33.0",
	}
	c := newChanges(e, command)
	command.RunE = func(command *cobra.Command, args []string) error {
		workloads, pairs, err := splitPairs(args)
		if err != nil {
			return err
		}
		images, err := change.ParseImages(pairs)
		if err != nil {
			return err
		}
		return c.run(command.Context(), workloads, edit(change.SetImages(images)))
	}
	return command
}

// splitPairs tells the workloads from the images behind them.
func splitPairs(args []string) (workloads, pairs []string, err error) {
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "="):
			pairs = append(pairs, arg)
		case len(pairs) > 0:
			return nil, nil, fmt.Errorf("found %q behind an image: accepted are the workloads first, then CONTAINER=IMAGE", arg)
		default:
			workloads = append(workloads, arg)
		}
	}
	return workloads, pairs, nil
}

func newSetResourcesCommand(e *environment) *cobra.Command {
	var containers, requests, limits string
	command := &cobra.Command{
		Use:   "resources KIND/NAME ... [-c CONTAINER] --requests=... --limits=...",
		Short: "Change requests and limits of containers",
		Long: "Changes requests and limits in the template; those that are not named stay. Without -c it is for all containers that run along: " +
			"those of init containers that run once cannot change in place, and are changed when they are named.",
		Example: "  kubectl insitu set resources statefulset.apps.kruise.io/db -c postgres --requests=cpu=500m,memory=1Gi --limits=memory=1Gi",
	}
	c := newChanges(e, command)
	command.Flags().StringVarP(&containers, "containers", "c", "", "A container, or a pattern with *")
	command.Flags().StringVar(&requests, "requests", "", "Requests, such as cpu=100m,memory=256Mi")
	command.Flags().StringVar(&limits, "limits", "", "Limits, such as cpu=200m,memory=512Mi")
	command.RunE = func(command *cobra.Command, args []string) error {
		wanted := change.Resources{Containers: containers}
		var err error
		if wanted.Requests, err = change.ParseResources(requests); err != nil {
			return fmt.Errorf("--requests: %w", err)
		}
		if wanted.Limits, err = change.ParseResources(limits); err != nil {
			return fmt.Errorf("--limits: %w", err)
		}
		return c.run(command.Context(), args, edit(change.SetResources(wanted)))
	}
	return command
}
