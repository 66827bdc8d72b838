// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"errors"
	other "time"
)

// Decide looks at the clock, under another name.
func Decide() other.Time {
	return other.Now() // want: the time is a parameter
}

// Fail panics.
func Fail() {
	panic(errors.New("failed")) // want: nothing panics
}
