// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// audit holds the requests of a client that write.
type audit struct {
	mutex          sync.Mutex
	writes, dryRun []string
}

// audited returns a connection whose requests are looked at.
func audited(config *rest.Config) (*rest.Config, *audit) {
	a := &audit{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			a.note(request)
			return next.RoundTrip(request)
		})
	})
	return config, a
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

func (a *audit) note(request *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	line := fmt.Sprintf("%s %s", request.Method, request.URL)
	switch {
	case request.Method == http.MethodGet, strings.HasSuffix(request.URL.Path, "/selfsubjectaccessreviews"):
	case slices.Equal(request.URL.Query()["dryRun"], []string{"All"}):
		a.dryRun = append(a.dryRun, line)
	default:
		a.writes = append(a.writes, line)
	}
}

// Writes returns the requests that wrote, or could have.
func (a *audit) Writes() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.writes)
}

// DryRuns returns the requests that asked what the API server would say.
func (a *audit) DryRuns() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.dryRun)
}
