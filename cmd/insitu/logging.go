// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the format json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// setUpLogging makes this process, its libraries included, log to output as
// configured. It can be done once.
func setUpLogging(config configv1alpha1.LoggingConfiguration, output io.Writer) error {
	logging := logsapi.NewLoggingConfiguration()
	logging.Format = string(config.Format)
	logging.Verbosity = logsapi.VerbosityLevel(*config.Verbosity)
	streams := &logsapi.LoggingOptions{ErrorStream: output, InfoStream: output}
	if err := logsapi.ValidateAndApplyWithOptions(logging, streams, nil); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	ctrl.SetLogger(klog.Background())

	return nil
}
