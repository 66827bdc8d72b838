// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package options may look at the clock: it decides nothing.
package options

import "time"

// Started is when the process started.
func Started() time.Time {
	return time.Now()
}
