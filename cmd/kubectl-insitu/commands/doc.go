// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package commands holds the commands of the plugin, one file each: they read the
// command line, have package cluster or change do the work, and print what came of it.
package commands
