// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package steering_test runs the commands of kubectl insitu that steer rollouts against
// a real API server with the policies that hold workloads. No controller runs: what
// controllers would record is written by the tests.
package steering_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/policies"
)

// server is the API server that all tests of this package share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

// administrator is a client of the server with the policies.
var administrator = sync.OnceValues(func() (client.Client, error) {
	scheme, err := cluster.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(server, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return c, policies.Install(context.Background(), c)
})
