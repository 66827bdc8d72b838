// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// screen is a terminal in which it can be seen what a person would see: it understands
// what Live writes, and panics at anything else. Where it reflows, as most do, lines that
// are broken by a narrower window come together again in a wider one; others, as xterm,
// cut them off.
type screen struct {
	mutex         sync.Mutex
	width, height int
	reflows       bool
	rows          []screenRow
	x, y          int
	hidesCursor   bool
}

// screenRow is a row, and whether the text goes on in the next.
type screenRow struct {
	text   []rune
	goesOn bool
}

func newScreen(width, height int, reflows bool) *screen {
	return &screen{width: width, height: height, reflows: reflows, rows: make([]screenRow, 1)}
}

func (s *screen) Size() (width, height int, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.width, s.height, nil
}

// seen returns what is on the screen.
func (s *screen) seen() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	b := strings.Builder{}
	for _, row := range s.rows[max(len(s.rows)-s.height, 0):] {
		b.WriteString(strings.TrimRight(string(row.text), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (s *screen) showsCursor() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !s.hidesCursor
}

func (s *screen) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	runes := []rune(string(p))
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\x1b':
			end := i + 2 + slices.IndexFunc(runes[i+2:], func(r rune) bool { return r >= '@' && r <= '~' })
			s.escape(string(runes[i+1 : end+1]))
			i = end
		case '\r':
			s.x = 0
		case '\n':
			s.down()
		default:
			s.put(r)
		}
	}
	return len(p), nil
}

// escape carries out an escape sequence.
func (s *screen) escape(sequence string) {
	up := 0
	switch {
	case sequence == "[J":
		s.rows = s.rows[:s.y+1]
		s.rows[s.y] = screenRow{text: s.rows[s.y].text[:min(s.x, len(s.rows[s.y].text))]}
	case sequence == "[?25l":
		s.hidesCursor = true
	case sequence == "[?25h":
		s.hidesCursor = false
	case strings.HasSuffix(sequence, "m"):
	case scan(sequence, "[%dA", &up):
		s.y = max(s.y-up, max(len(s.rows)-s.height, 0))
	default:
		panic(fmt.Sprintf("escape sequence %q", sequence))
	}
}

func scan(text, format string, number *int) bool {
	n, err := fmt.Sscanf(text, format, number)
	return n == 1 && err == nil && fmt.Sprintf(format, *number) == text
}

func (s *screen) down() {
	s.y++
	if s.y == len(s.rows) {
		s.rows = append(s.rows, screenRow{})
	}
}

func (s *screen) put(r rune) {
	if s.x == s.width {
		s.rows[s.y].goesOn = true
		s.x = 0
		s.down()
	}
	row := &s.rows[s.y]
	for len(row.text) <= s.x {
		row.text = append(row.text, ' ')
	}
	row.text[s.x] = r
	s.x++
}

// resize gives the window another size. The cursor is below what was written.
func (s *screen) resize(width, height int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.width, s.height = width, height
	var rows []screenRow
	if s.reflows {
		var whole []rune
		for _, row := range s.rows {
			whole = append(whole, row.text...)
			if row.goesOn {
				continue
			}
			for len(whole) > width {
				rows = append(rows, screenRow{whole[:width:width], true})
				whole = whole[width:]
			}
			rows = append(rows, screenRow{text: whole})
			whole = nil
		}
	} else {
		for _, row := range s.rows {
			rows = append(rows, screenRow{text: row.text[:min(len(row.text), width)]})
		}
	}
	s.rows, s.y = rows, len(rows)-1
}

// everything returns what is on the screen, and what has moved out of it.
func (s *screen) everything() string {
	s.mutex.Lock()
	height := s.height
	s.height = len(s.rows)
	s.mutex.Unlock()
	defer func() { s.height = height }()
	return s.seen()
}
