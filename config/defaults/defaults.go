// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaults holds the admission policies that write the defaults of
// StatefulSets and CloneSets where their schemas cannot, for those who install them
// from Go.
package defaults

import (
	"embed"
)

// Manifests holds one YAML file per kind: the policy and its binding.
//
//go:embed *.yaml
var Manifests embed.FS
