// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"unicode/utf8"
)

// style is how a text looks in a terminal with colors: the parameters of the escape
// sequence "select graphic rendition".
type style string

const (
	plain style = ""
	bold  style = "1"
	faint style = "2"
	bad   style = "31"
	good  style = "32"
	busy  style = "33"
	calm  style = "36"
)

const (
	// minimum is how many columns are left to words that are indented.
	minimum = 20
	// shortest is how many columns are left to a name that is shortened.
	shortest = 10
)

// span is a text in one style.
type span struct {
	style style
	text  string
}

// line is a line without its end. Its spans hold what is seen: they are cut and
// aligned before colors are put around them.
type line []span

func text(s string) line {
	return line{{plain, s}}
}

func styled(style style, s string) line {
	return line{{style, s}}
}

// width returns how many columns the line takes.
func (l line) width() int {
	width := 0
	for _, s := range l {
		width += utf8.RuneCountInString(s.text)
	}
	return width
}

// cut returns the line as far as it fits into a terminal.
func (l line) cut(width int) line {
	if width <= 0 || l.width() <= width {
		return l
	}
	var short line
	left := width - 1
	for _, s := range l {
		runes := []rune(s.text)
		if len(runes) >= left {
			return append(short, span{s.style, string(runes[:left]) + "…"})
		}
		left -= len(runes)
		short = append(short, s)
	}
	return short
}

// show returns the line as it is written.
func (l line) show(color bool) string {
	b := strings.Builder{}
	for _, s := range l {
		if color && s.style != plain && s.text != "" {
			b.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
		} else {
			b.WriteString(s.text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// glyph is a character as it is seen.
type glyph struct {
	rune  rune
	style style
}

func (l line) glyphs() []glyph {
	var glyphs []glyph
	for _, s := range l {
		for _, r := range s.text {
			glyphs = append(glyphs, glyph{r, s.style})
		}
	}
	return glyphs
}

func lineOf(glyphs []glyph) line {
	var l line
	for _, g := range glyphs {
		if last := len(l) - 1; last >= 0 && l[last].style == g.style {
			l[last].text += string(g.rune)
		} else {
			l = append(l, span{g.style, string(g.rune)})
		}
	}
	return l
}

// wrap breaks a line that is wider than the terminal at its blanks, and indents what
// follows. A word that does not fit is broken, too.
func wrap(l line, width, indent int) []line {
	if width <= 0 || l.width() <= width {
		return []line{l}
	}
	indent = max(min(indent, width-minimum), 0)
	var lines []line
	left, room := l.glyphs(), width
	for len(left) > room {
		end := lastBlank(left[:room+1])
		if end <= 0 {
			end = room
		}
		lines = append(lines, lineOf(left[:end]))
		for left = left[end:]; len(left) > 0 && left[0].rune == ' '; {
			left = left[1:]
		}
		left = append(text(strings.Repeat(" ", indent)).glyphs(), left...)
	}
	return append(lines, lineOf(left))
}

// lastBlank returns where the last blank is that words come before; 0 if there is none.
func lastBlank(glyphs []glyph) int {
	for i := len(glyphs) - 1; i > 0; i-- {
		if glyphs[i].rune == ' ' && glyphs[i-1].rune != ' ' {
			return i
		}
	}
	return 0
}

// oneLine makes one line of a text.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// shortenLeft keeps the end of a text, which is what tells images apart, and some columns
// of it in the narrowest terminal.
func shortenLeft(s string, width int) string {
	width = max(width, shortest)
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return "…" + string(runes[len(runes)-width+1:])
}
