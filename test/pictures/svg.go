// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

// The screen: the size of a character, the space around the text, and the bar above it.
const (
	charWidth, lineHeight = 7.8, 20.0
	margin, barHeight     = 18.0, 34.0
	// columns is how many characters fit into a line.
	columns = 88
	// hold is how long the end stays on the screen before all begins again.
	hold = 4 * time.Second
)

// piece is a text on the screen from a time on.
type piece struct {
	at          time.Duration
	row, column int
	text, class string
}

// pieces returns what is on the screen: a prompt is typed word by word.
func (r *recording) pieces() []piece {
	var all []piece
	for row, l := range r.lines {
		if !l.isPrompt {
			all = append(all, piece{at: l.at, row: row, text: l.text, class: "o"})
			continue
		}
		all = append(all, piece{at: l.at, row: row, text: "$", class: "p"})
		column := 2
		for word := range strings.SplitSeq(l.text, " ") {
			end := column - 2 + utf8.RuneCountInString(word)
			at := l.at + (l.typed-l.at)*time.Duration(end)/time.Duration(max(utf8.RuneCountInString(l.text), 1))
			all = append(all, piece{at: at, row: row, column: column, text: word, class: "c"})
			column += utf8.RuneCountInString(word) + 1
		}
	}
	return all
}

// render draws a recording as an SVG that plays it again and again. A viewer that wants no motion,
// or plays none, shows the end.
func render(r *recording) []byte {
	width, height := columns*charWidth+2*margin, float64(len(r.lines))*lineHeight+barHeight+2*margin
	total := r.took + hold
	style, text := &strings.Builder{}, &strings.Builder{}
	for i, p := range r.pieces() {
		if p.text == "" {
			continue
		}
		percent := 100 * p.at.Seconds() / total.Seconds()
		fmt.Fprintf(style, "@keyframes k%d{0%%{opacity:0}%.2f%%{opacity:1}}#t%d{animation-name:k%d}\n", i, percent, i, i)
		fmt.Fprintf(text, `<text id="t%d" class="%s" x="%.1f" y="%.1f" textLength="%.1f">%s</text>`+"\n", i, p.class,
			margin+float64(p.column)*charWidth, barHeight+margin+(float64(p.row)+0.7)*lineHeight,
			float64(utf8.RuneCountInString(p.text))*charWidth, html.EscapeString(p.text))
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString(r.label()))
	b.WriteString(`<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
.o{fill:#c9d1d9}.c{fill:#ffffff;font-weight:600}.p{fill:#3fb950}
`)
	fmt.Fprintf(b, "@media (prefers-reduced-motion:no-preference){\ntext{animation:%.2fs step-end infinite}\n%s}\n</style>\n", total.Seconds(), style)
	fmt.Fprintf(b, `<rect width="%.0f" height="%.0f" rx="10" fill="#0d1117"/><circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/>`+"\n", width, height)
	b.WriteString(text.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// label says in words what the recording shows, for who does not see it.
func (r *recording) label() string {
	var commands []string
	for _, l := range r.lines {
		if l.isPrompt {
			commands = append(commands, l.text)
		}
	}
	return "A terminal: " + strings.Join(commands, "; ")
}
