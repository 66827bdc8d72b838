// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	c, err := client.New(server, client.Options{})
	if err != nil {
		return nil, err
	}

	return c, policies.Install(context.Background(), c)
})

func newClient(t *testing.T) client.Client {
	t.Helper()
	c, err := administrator()
	must(t, err)

	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
