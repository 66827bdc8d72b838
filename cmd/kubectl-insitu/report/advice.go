// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

// Advice says what to do about a reason.
func Advice(string) string { return "" }
