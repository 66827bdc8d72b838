// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/insitu-dev/insitu/test/lab/simnode"
)

// RunSimulatedNodes is the life of all simulated nodes.
func (l *Lab) RunSimulatedNodes(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.config(simulatedNodes+".kubeconfig"))
	if err != nil {
		return fmt.Errorf("read kubeconfig of simulated nodes: %w", err)
	}
	options := simnode.Options{Nodes: l.SimulatedNodes, Timing: simnode.Timing{Lease: l.leasePeriod()}}
	if l.Nodes > 0 {
		// Its images are those of the real nodes; a lab without has none in it.
		options.Registry = l.Registry()
	}
	return simnode.Run(ctx, config, options)
}
