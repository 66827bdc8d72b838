// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package argocd holds the health script for the workloads of apps.kruise.io in Argo
// CD, for those who run it from Go.
package argocd

import (
	_ "embed"
)

// Health is the script, in Lua.
//
//go:embed health.lua
var Health string
