// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
)

// environment is what the commands share: streams, and the flags that say which cluster
// and which namespace are meant.
type environment struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
}

// connect returns the cluster and the namespace that the flags and the kubeconfig say.
func (e *environment) connect() (*cluster.Cluster, string, error) {
	loader := e.flags.ToRawKubeConfigLoader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	c, err := cluster.New(config)
	return c, namespace, err
}

// find returns the workload that the arguments of a command name.
func (e *environment) find(ctx context.Context, args []string) (*cluster.Cluster, cluster.Found, error) {
	c, namespace, err := e.connect()
	if err != nil {
		return nil, cluster.Found{}, err
	}
	found, err := c.Find(ctx, namespace, args...)
	return c, found, err
}
