// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies holds the admission policies that keep Deployments, StatefulSets
// and DaemonSets from recreating pods that the manager updates in place, for those
// who install them from Go.
package policies

import (
	"embed"
)

// Manifests holds one YAML file per policy, with its binding. Those that hold and keep do
// nothing without the ServiceAccount insitu-holds in the namespace insitu-system.
//
//go:embed *.yaml
var Manifests embed.FS
