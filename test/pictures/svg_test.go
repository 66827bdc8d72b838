// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A prompt is typed word by word, what a command prints appears as a line, and all of it is text
// that is read as it was.
func TestRender(t *testing.T) {
	g := NewWithT(t)
	made := &recording{took: 6 * time.Second, lines: []line{
		{text: "kubectl get pods", isPrompt: true, typed: 2 * time.Second},
		{at: 3 * time.Second, text: `<none> & "more"`},
		{at: 3 * time.Second},
	}}
	var at []time.Duration
	var words []string
	for _, p := range made.pieces() {
		at, words = append(at, p.at), append(words, p.text)
	}
	g.Expect(words).To(Equal([]string{"$", "kubectl", "get", "pods", `<none> & "more"`, ""}))
	g.Expect(at).To(Equal([]time.Duration{0, 875 * time.Millisecond, 1375 * time.Millisecond, 2 * time.Second, 3 * time.Second, 3 * time.Second}))

	picture := string(render(made))
	g.Expect(picture).To(ContainSubstring("text{animation:10.00s step-end infinite}"), "with the time for which the end is held")
	g.Expect(picture).To(ContainSubstring("@keyframes k4{0%{opacity:0}30.00%{opacity:1}}"))
	g.Expect(picture).To(ContainSubstring(`aria-label="A terminal: kubectl get pods"`))
	texts := 0
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred(), "it is XML")
		if start, isStart := token.(xml.StartElement); isStart && start.Name.Local == "text" {
			texts++
		}
	}
	g.Expect(texts).To(Equal(5), "an empty line is none")
}

func TestWrap(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("ä", columns)
	g.Expect(wrap("")).To(Equal([]string{""}))
	g.Expect(wrap(long)).To(Equal([]string{long}))
	g.Expect(wrap(long + "end")).To(Equal([]string{long, "end"}))
}

// What is printed is kept with the time of each line; a command that goes on is ended when another
// one has ended. If a command fails, so does the recording.
func TestRecord(t *testing.T) {
	g := NewWithT(t)
	t.Chdir("../..")
	made, err := record(t.Context(), []command{{words: "echo one"}, {words: "tail -n 2 -f scene.yaml", until: "true"}})
	g.Expect(err).NotTo(HaveOccurred())
	var said []string
	for _, l := range made.lines {
		said = append(said, l.text)
	}
	g.Expect(said).To(HaveExactElements("echo one", "one", "tail -n 2 -f scene.yaml", "      - name: main", "        image: nginx:alpine", "^C"))
	g.Expect(made.lines[1].at).To(BeNumerically(">=", made.lines[0].typed))
	g.Expect(made.lines[2].at).To(BeNumerically(">=", made.lines[1].at+pause))

	_, err = record(t.Context(), []command{{words: "false"}})
	g.Expect(err).To(MatchError(ContainSubstring("run false: exit status 1")))
	_, err = record(t.Context(), []command{{words: "tail -f pods.txt", until: "echo no >&2; exit 3"}})
	g.Expect(err).To(MatchError(ContainSubstring("exit status 3: no")))
}
