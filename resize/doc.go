// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package resize decides how the resources of a running pod are changed.
//
// It is pure: facts go in, a decision comes out. It holds no client, no clock, no
// logger and no state.
package resize
