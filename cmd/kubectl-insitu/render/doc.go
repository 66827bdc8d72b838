// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package render shows reports to people in terminals, and to programs behind pipes:
// as a tree, as lines, and as a view that follows a rollout. It knows nothing of
// clusters: what it shows is in the report, and the time is a parameter.
package render
