// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kinds has the table of the kinds of workloads that the plugin knows. Each kind has
// a file, which reads its objects into a View. The rest of the plugin works with views, and
// does not ask for the Go type of an object.
//
// A new kind is a new file and a new row of All.
package kinds
