// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/controllers/native"
)

// releaseHeld releases whatever is held in the namespaces of the configuration, for
// an uninstall.
func releaseHeld(ctx context.Context, config *configv1alpha1.InsituConfiguration, out io.Writer) error {
	connection, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(limitConnection(connection, config.ClientConnection), client.Options{Scheme: scheme, FieldOwner: fieldOwner})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return native.ReleaseAll(ctx, c, config.Namespaces, out)
}
