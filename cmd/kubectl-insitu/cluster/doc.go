// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster finds workloads, reads all that belongs to them with the rights of the
// user, and has the controllers' own code decide on them: what the operator would do next,
// without doing it.
package cluster
