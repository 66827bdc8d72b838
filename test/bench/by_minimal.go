// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// withMinimal measures the same rollouts by the minimal client.
func (b *bench) withMinimal(ctx context.Context) error {
	if err := createMinimalAccount(ctx, b.api); err != nil {
		return err
	}
	connection, err := minimalAccount.connection(ctx, b.api, b.admin)
	if err != nil {
		return err
	}
	// What the manager's client uses for pods.
	connection.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	for i, budget := range budgets {
		if err := b.measureMinimal(ctx, kube, len(budgets)+i+1, budget); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureMinimal(ctx context.Context, kube kubernetes.Interface, state int, budget string) error {
	ctx, cancel := context.WithCancel(ctx) // ends its watch
	defer cancel()
	percentage := intstr.FromString(budget)
	atOnce, err := intstr.GetScaledValueFromIntOrPercent(&percentage, b.pods, false)
	if err != nil {
		return fmt.Errorf("read budget: %w", err)
	}
	self, err := newProcess(byMinimal, os.Getpid())
	if err != nil {
		return err
	}
	m, err := newMinimal(ctx, kube, b.change.minimal(state))
	if err != nil {
		return err
	}
	r := rollout{By: byMinimal, MaxUnavailable: budget}
	err = b.observe(ctx, &r, actor{self, minimalAccount}, func(ctx context.Context) error {
		return m.update(ctx, atOnce)
	})
	b.result.Rollouts = append(b.result.Rollouts, r)
	return err
}
