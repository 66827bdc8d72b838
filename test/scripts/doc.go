// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package scripts tests what the scripts in hack share, and what they make of a machine
// that was set up for other work.
package scripts
