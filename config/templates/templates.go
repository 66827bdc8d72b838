// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package templates holds the admission policy that refuses templates of StatefulSets, CloneSets
// and DaemonSets of apps.kruise.io from which no pod can be made, for those who install it from Go.
package templates

import (
	_ "embed"
)

// Manifest holds the policy and its binding, as YAML.
//
//go:embed policy.yaml
var Manifest []byte
