// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the generated CustomResourceDefinitions, for those who
// install them from Go. The files are written by hack/crd.
package crd

import (
	"embed"
)

// Manifests holds one YAML file per definition.
//
//go:embed *.yaml
var Manifests embed.FS
