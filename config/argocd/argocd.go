// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package argocd holds the health scripts for workloads in Argo CD, for those who run
// them from Go.
package argocd

import (
	_ "embed"
)

// Health is the script for the workloads of apps.kruise.io, in Lua.
//
//go:embed health.lua
var Health string
