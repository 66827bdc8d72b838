// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// namespaceFile is where a pod finds the namespace that it runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// nameOwnNamespace makes a manager whose rights are those of namespaces act in the one of
// its own pod, as a file says, where the configuration names no others.
func nameOwnNamespace(config *configv1alpha1.InsituConfiguration, file string) error {
	if config.Scope != configv1alpha1.NamespaceScope || len(config.Namespaces) > 0 {
		return nil
	}
	own, err := ownNamespace(file)
	if err != nil {
		return err
	}
	if own == "" {
		return errors.New("namespaces: found none with scope Namespace, outside a cluster: accepted are the namespaces to act in")
	}
	config.Namespaces = []string{own}
	return nil
}

// ownNamespace returns the namespace of this pod; empty outside a cluster.
func ownNamespace(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the namespace of this pod: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
