// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers imports upwards and has a clock of its own.
package controllers

import (
	"time"

	_ "github.com/insitu-dev/insitu/cmd/insitu/options" // want: imports point down
)

// Later is in an hour.
func Later() time.Time {
	return time.Now().Add(time.Hour) // want: the time is a parameter
}

func init() {} // want: don't use `init` function
