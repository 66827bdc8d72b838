// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
	"github.com/insitu-dev/insitu/cmd/insitu/check"
)

// runCheck looks whether a manager with the account and the configuration of this process
// has what it needs.
func runCheck(ctx context.Context, config *configv1alpha1.InsituConfiguration, out io.Writer) error {
	connection, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	if config.LeaderElection.ResourceNamespace == "" {
		if config.LeaderElection.ResourceNamespace, err = ownNamespace(namespaceFile); err != nil {
			return err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	return check.Run(ctx, limitConnection(connection, config.ClientConnection), scheme, config, out)
}
