// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// The files of a serving certificate, as a Secret of type kubernetes.io/tls
// mounts them.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// metricsOptions returns how metrics are served. A configured certificate that
// is not there is an error: the metrics server would make one of its own, and
// no client would trust it.
func metricsOptions(config configv1alpha1.MetricsConfiguration) (metricsserver.Options, error) {
	options := metricsserver.Options{BindAddress: config.BindAddress}
	if !*config.Secure {
		return options, nil
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	if config.CertDir == "" {
		return options, nil
	}
	options.CertDir, options.CertName, options.KeyName = config.CertDir, certificateFile, keyFile
	for _, file := range []string{certificateFile, keyFile} {
		if _, err := os.Stat(filepath.Join(config.CertDir, file)); err != nil {
			return metricsserver.Options{}, fmt.Errorf("metrics.certDir: find certificate: %w", err)
		}
	}

	return options, nil
}
