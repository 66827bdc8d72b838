// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"time"
)

// maxLines bounds a story: the end of a long one tells most.
const maxLines = 400000

// story is what happened, one line an event.
type story struct {
	lines []string
	last  time.Duration
}

func newStory() *story {
	return &story{last: -1}
}

func (s *story) add(at time.Duration, format string, args ...any) {
	when := ""
	if at != s.last {
		when = fmt.Sprintf("+%ds", int(at.Seconds()))
	}
	s.last = at
	if len(s.lines) >= maxLines {
		s.lines = append(s.lines[:0], s.lines[maxLines/2:]...)
	}
	s.lines = append(s.lines, fmt.Sprintf("%-7s %s", when, fmt.Sprintf(format, args...)))
}

func (s *story) String() string {
	return strings.Join(s.lines, "\n")
}
