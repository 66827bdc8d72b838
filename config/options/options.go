// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package options holds the admission policy that refuses what is no option of
// Deployments, StatefulSets and DaemonSets, for those who install it from Go.
package options

import (
	_ "embed"
)

// Manifest holds the policy and its binding, as YAML.
//
//go:embed policy.yaml
var Manifest []byte
