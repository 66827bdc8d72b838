// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
)

// sourceOf returns what a dashboard reads from, with the rights of the user: all
// workloads of a namespace, or of all namespaces for the empty one. It is followed until
// ctx ends.
type sourceOf func(ctx context.Context, namespace string) (dashboard.Source, error)

func newDashboardCommand(env *environment, connect sourceOf) *cobra.Command {
	var port int
	var open bool
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Show all workloads, their pods by step and what they wait for, on a local web page",
		Long: "Serves a web page on 127.0.0.1 and prints its address, until it is stopped with Ctrl-C. It reads the cluster with your " +
			"kubeconfig, writes nothing to it and installs nothing there. The address holds a secret: other users of this machine " +
			"cannot read the page without it. Without --namespace it shows all namespaces.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return env.serveDashboard(command.Context(), connect, port, open)
		},
	}
	command.Flags().IntVar(&port, "port", 0, "port of 127.0.0.1 to listen on; 0 takes a free one")
	command.Flags().BoolVar(&open, "open", false, "open the page in your browser")
	return command
}

func (e *environment) serveDashboard(ctx context.Context, connect sourceOf, port int, open bool) error {
	namespace := *e.flags.Namespace
	source, err := connect(ctx, namespace)
	if err != nil {
		return err
	}
	server, err := dashboard.Listen(ctx, port, source, dashboard.Options{Cluster: e.contextName(), Namespace: namespace})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "The dashboard is at %s\nIt is for you alone: do not pass the address on. Stop it with Ctrl-C.\n", server.URL())
	if open {
		remove, err := dashboard.Open(ctx, server.URL())
		if err != nil {
			fmt.Fprintln(e.ErrOut, "warning:", err)
		} else {
			defer remove()
		}
	}
	return server.Serve(ctx)
}

// contextName is what the kubeconfig calls the connection; empty if it has no name.
func (e *environment) contextName() string {
	if name := *e.flags.Context; name != "" {
		return name
	}
	config, err := e.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return config.CurrentContext
}
