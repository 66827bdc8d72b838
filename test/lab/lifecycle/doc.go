// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle tests that labs come up, work, and go without a trace.
// Its tests bring up real labs: they need Linux and root, take some minutes,
// and run with
//
//	go test -tags lab -timeout 30m ./lifecycle/
//
// They leave other labs on the machine alone. INSITU_LAB_PROGRAM is the
// program to test; by default it is built by hack/lab.
package lifecycle
