// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package report says of a workload what people want to know: where its pods are, what
// they wait for, and what to do about it. It is made by pure functions from what the
// cluster holds, what the operator has reported and what the controllers would decide.
//
// The JSON of its types is what the plugin prints with -o json, and what the dashboard
// reads. Fields are added, never renamed.
package report
