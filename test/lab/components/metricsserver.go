// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"sigs.k8s.io/metrics-server/cmd/metrics-server/app"
)

// runMetricsServer serves what containers use, as kubelets measure it.
func runMetricsServer() int {
	return cli.Run(app.NewMetricsServerCommand(genericapiserver.SetupSignalHandler()))
}
