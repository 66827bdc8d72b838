// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/utils/clock"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Screen is a terminal that a view is drawn to.
type Screen interface {
	io.Writer
	// Size returns how many columns and lines the terminal has now.
	Size() (width, height int, err error)
}

// Terminal is the Screen of a file.
type Terminal struct{ *os.File }

// Size implements Screen.
func (t Terminal) Size() (width, height int, err error) {
	return term.GetSize(int(t.Fd())) //nolint:gosec // a file descriptor is a small number
}

// Escape sequences of terminals.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearBelow = "\x1b[J"
	cursorUp   = "\x1b[%dA"
)

// lookPeriod is how often a view is looked at again: ages grow, and the window may have
// another size. Polling works in every terminal and on every system; signals do not.
const lookPeriod = 200 * time.Millisecond

// Live draws the reports that come, each over the one before, as the window is at that
// moment. When ctx ends or there are no more reports, it leaves the last one behind in
// full, and the cursor below it.
func Live(ctx context.Context, screen Screen, reports <-chan report.Workload, options Options, clock clock.WithTicker) error {
	v := view{screen: screen, options: options}
	ticker := clock.NewTicker(lookPeriod)
	defer ticker.Stop()
	fmt.Fprint(screen, hideCursor)
	defer fmt.Fprint(screen, showCursor)
	for {
		var err error
		select {
		case <-ctx.Done():
			return v.end(clock.Now())
		case workload, ok := <-reports:
			if !ok {
				return v.end(clock.Now())
			}
			v.workload = &workload
			err = v.draw(clock.Now())
		case <-ticker.C():
			err = v.draw(clock.Now())
		}
		if err != nil {
			return err
		}
	}
}

// view is what is on the screen.
type view struct {
	screen   Screen
	options  Options
	workload *report.Workload
	// lines are what was drawn last, and shown is how.
	lines []line
	shown string
}

// draw draws the workload if that looks other than what is on the screen.
func (v *view) draw(now time.Time) error {
	return v.redraw(now, fit)
}

// end leaves the workload behind in full.
func (v *view) end(now time.Time) error {
	return v.redraw(now, func(workload report.Workload, options Options, _ int) []line {
		return treeOf(workload, options).all()
	})
}

// redraw draws the lines that are returned for a number of them that has room.
func (v *view) redraw(now time.Time, lines func(report.Workload, Options, int) []line) error {
	if v.workload == nil {
		return nil
	}
	width, height, err := v.screen.Size()
	if err != nil {
		return fmt.Errorf("read size of terminal: %w", err)
	}
	width, height = cmp.Or(width, 80), cmp.Or(height, 24)
	// The last column stays free: terminals differ in where the cursor is after it.
	v.options.Width, v.options.Now = max(width-1, minimum), now
	return v.replace(lines(*v.workload, v.options, height-1), width, height)
}

// replace writes lines over those that are there.
func (v *view) replace(lines []line, width, height int) error {
	b := strings.Builder{}
	for _, l := range lines {
		b.WriteString(l.show(v.options.Color) + "\r\n")
	}
	shown := fmt.Sprintf("%s%dx%d", b.String(), width, height)
	if shown == v.shown {
		return nil
	}
	_, err := io.WriteString(v.screen, v.backToStart(width)+b.String())
	v.lines, v.shown = lines, shown
	return err
}

// backToStart moves the cursor to where the view begins, and clears it. In a window that
// was made narrower, terminals have broken its lines into several. What was moved out of
// one that was made lower cannot be reached any more: the cursor stops at the top.
func (v *view) backToStart(width int) string {
	rows := 0
	for _, l := range v.lines {
		rows += max((l.width()+width-1)/width, 1)
	}
	if rows == 0 {
		return "\r" + clearBelow
	}
	return "\r" + fmt.Sprintf(cursorUp, rows) + clearBelow
}

// fit returns what fits into a window: the whole tree, or one in which pods are summed up,
// or the part of that which has room above what the workload waits for.
func fit(workload report.Workload, options Options, height int) []line {
	s := treeOf(workload, options)
	if lines := s.all(); len(lines) <= height {
		return lines
	}
	options.compact = !options.All
	s = treeOf(workload, options)
	lines := s.all()
	if len(lines) <= height {
		return lines
	}
	const more = 1
	room := max(len(s.tree)-(len(lines)-height)-more, 0)
	hidden := len(s.tree) - room
	s.tree = append(s.tree[:room:room], styled(faint, fmt.Sprintf("… %s more, without --watch all are shown", count(hidden, "line"))))
	lines = s.all()
	return lines[:min(len(lines), height)]
}
