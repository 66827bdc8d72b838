// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload holds what the controllers of all kinds do alike around the
// pods of a workload: whose they are, how they are made and deleted, and how the
// plan for them is reported.
//
// What is here takes the few things that it needs. What makes a kind what it is,
// as names, numbers and order, stays in the package of that kind.
package workload
