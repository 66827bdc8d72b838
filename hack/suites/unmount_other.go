// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// unmountBelow does nothing: tests mount on Linux only.
func unmountBelow(string) error { return nil }
