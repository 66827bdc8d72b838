// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	clientTimeout = 2 * time.Minute
	// longestAnswer bounds the text of an error, in bytes.
	longestAnswer = 4096
)

// Client talks to a supervisor.
type Client struct {
	// Socket is the path given to Supervisor.Serve.
	Socket string
}

// Status returns the status of every process of the supervisor.
func (c Client) Status(ctx context.Context) ([]Status, error) {
	body, err := c.call(ctx, http.MethodGet, "/processes")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var all []Status
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return all, nil
}

// Stop kills the process and returns when it is gone.
func (c Client) Stop(ctx context.Context, name string) error {
	return c.order(ctx, name, "stop")
}

// Start brings back a process that was stopped, without waiting for it.
func (c Client) Start(ctx context.Context, name string) error {
	return c.order(ctx, name, "start")
}

func (c Client) order(ctx context.Context, name, verb string) error {
	body, err := c.call(ctx, http.MethodPost, "/processes/"+name+"/"+verb)
	if err != nil {
		return err
	}
	return body.Close()
}

// call returns the body of a successful answer.
func (c Client) call(ctx context.Context, method, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: clientTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
		},
		DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask supervisor: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	_ = response.Body.Close()
	return nil, errors.New(strings.TrimSpace(string(text)))
}
