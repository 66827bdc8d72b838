// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// clientName is the pod that asks for pages, 50 times a second, each time on a new
// connection. Its image is one of the lab's.
const (
	clientName  = "client"
	clientImage = "insitu-dev/sleeper:v1"
)

// requests is what became of what the client asked for.
type requests struct {
	OK, Failed int
	Failures   []string
}

// startClient lets the client ask a Service, and returns when it is answered.
func (d *demo) startClient(ctx context.Context, service string) error {
	url := fmt.Sprintf("http://%s.%s.svc", service, namespace)
	if err := d.kubectl(ctx, "run", clientName, "--image="+clientImage, "--", "-load="+url); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		now, err := d.requests(ctx)
		return err == nil && now.OK > 0, nil // its pod may not run yet
	})
	if err != nil {
		return fmt.Errorf("wait until pod %s is answered: %w", clientName, err)
	}
	return nil
}

// requests asks the client.
func (d *demo) requests(ctx context.Context) (requests, error) {
	answer := requests{}
	body, err := d.kubernetes.CoreV1().Pods(namespace).ProxyGet("http", clientName, "8080", "/load", nil).DoRaw(ctx)
	if err != nil {
		return answer, fmt.Errorf("ask pod %s for its requests: %w", clientName, err)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("read the answer of pod %s: %w", clientName, err)
	}
	return answer, nil
}

// reportRequests says how many requests have failed since an earlier look. It returns an
// error if one has.
func (d *demo) reportRequests(ctx context.Context, before requests) error {
	now, err := d.requests(ctx)
	if err != nil {
		return err
	}
	answered, failed := now.OK-before.OK, now.Failed-before.Failed
	all := answered + failed
	d.answered, d.failed = d.answered+answered, d.failed+failed
	fmt.Fprintf(d.out, "%d of %d requests failed meanwhile.\n", failed, all)
	if failed > 0 {
		return fmt.Errorf("%d of %d requests failed: %q", failed, all, now.Failures)
	}
	return nil
}
