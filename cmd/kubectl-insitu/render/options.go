// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Options say how a report is shown.
type Options struct {
	// Width is that of the terminal: lines are made to fit. 0 is for what reads lines of
	// any length.
	Width int
	// Color: the terminal shows colors.
	Color bool
	// All shows every pod of a large workload; otherwise those of which there is nothing
	// to be told are summed up.
	All bool
	// Now is what ages are counted to.
	Now time.Time

	// compact sums pods up as in a large workload.
	compact bool
}

// showsEach reports whether every pod of a workload is shown.
func (o Options) showsEach(w report.Workload) bool {
	return o.All || len(w.Pods) <= foldAbove && !o.compact
}

// columns returns how many columns there are.
func columns(options Options) int {
	if options.Width <= 0 {
		return math.MaxInt32
	}
	return options.Width
}

// OptionsFor returns the options for what is written to out now: the width of the
// terminal and colors if it is one. People turn colors off by NO_COLOR in their
// environment.
func OptionsFor(out io.Writer, now time.Time) Options {
	options := Options{Now: now}
	file, ok := out.(*os.File)
	if !ok || !IsTerminal(file) {
		return options
	}
	options.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(file.Fd())); err == nil { //nolint:gosec // a file descriptor is a small number
		options.Width = width
	}
	return options
}

// IsTerminal reports whether a person looks at what is written to out.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is a small number
}
