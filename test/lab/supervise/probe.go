// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	probePeriod  = 200 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// Probe finds out whether a process serves. Exactly one field is set.
type Probe struct {
	// URL must answer GET with a status below 300. The certificate of an
	// https URL is not verified: nothing is sent that needs protection.
	URL string
	// Unix is a socket that must accept a connection.
	Unix string
}

// Check returns nil if the process serves.
func (p *Probe) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if p.Unix != "" {
		return checkSocket(ctx, p.Unix)
	}
	return checkURL(ctx, p.URL)
}

func checkSocket(ctx context.Context, path string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return connection.Close()
}

func checkURL(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See Probe.URL.
		DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

// await blocks until the probe succeeds or the context ends, and reports
// which: true for success.
func (p *Probe) await(ctx context.Context) bool {
	for {
		if p.Check(ctx) == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(probePeriod):
		}
	}
}
