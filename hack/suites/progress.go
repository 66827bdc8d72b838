// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// progress tells how far the suites that run are, by what they print.
type progress struct {
	began time.Time

	mu      sync.Mutex
	running []*tally
	ended   []string
}

// tally counts what a suite has done: specs of ginkgo, or else packages of go test.
type tally struct {
	progress *progress
	suite    string
	// specs will run, as far as is known; done of them ran.
	specs, done int
	packages    int
	// failed are the specs and packages that failed.
	failed int
	// next, if it is not empty, is what became of the spec that the next line names.
	next string
}

var (
	// willRun begins the specs of a package.
	willRun = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)
	// ranPackage is what go test says of a package in the end.
	ranPackage = regexp.MustCompile(`^(ok|FAIL)\s+\S+/\S+\s`)
)

// start returns the tally of a suite that begins.
func (p *progress) start(suite string) *tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &tally{progress: p, suite: suite}
	p.running = append(p.running, t)

	return t
}

// end takes the suite from those that run.
func (t *tally) end() {
	p := t.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.running {
		if other == t {
			p.running = append(p.running[:i:i], p.running[i+1:]...)
		}
	}
	p.ended = append(p.ended, t.suite)
}

// see counts what a line of the suite tells. It returns what to say of it at once.
func (t *tally) see(line string) (alarm string) {
	t.progress.mu.Lock()
	defer t.progress.mu.Unlock()
	if t.next != "" {
		became := t.next
		t.next = ""

		return fmt.Sprintf("%s %s: %s", became, t.suite, strings.TrimSpace(line))
	}
	if found := willRun.FindStringSubmatch(line); found != nil {
		specs, _ := strconv.Atoi(found[1])
		t.specs += specs
	}
	switch {
	case strings.HasPrefix(line, "• [FAILED]"), strings.HasPrefix(line, "• [PANICKED"), strings.HasPrefix(line, "• [TIMEDOUT"):
		t.done++
		t.failed++
		t.next = "FAILED"
	case strings.HasPrefix(line, "↺ [FLAKEY"):
		t.done++
		t.next = "SECOND ATTEMPT"
	case strings.HasPrefix(line, "• ["):
		t.done++
	}
	found := ranPackage.FindStringSubmatch(line)
	if found == nil {
		return ""
	}
	t.packages++
	if found[1] == "ok" {
		return ""
	}
	t.failed++

	return fmt.Sprintf("FAILED %s: %s", t.suite, strings.TrimSpace(strings.TrimPrefix(line, "FAIL")))
}

// String says what runs, how far it is, and what has ended.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	for _, t := range p.running {
		part := t.suite
		switch {
		case t.specs > 0:
			part += fmt.Sprintf(" %d of %d specs", t.done, t.specs)
		case t.packages > 0:
			part += fmt.Sprintf(" %d packages", t.packages)
		}
		if t.failed > 0 {
			part += fmt.Sprintf(" (%d FAILED)", t.failed)
		}
		parts = append(parts, part)
	}
	line := fmt.Sprintf("%d min: %s", int(time.Since(p.began).Minutes()), strings.Join(parts, ", "))
	if len(p.ended) > 0 {
		line += "; ended: " + strings.Join(p.ended, ", ")
	}

	return line
}

// tell writes a line in every period until the context ends.
func (p *progress) tell(ctx context.Context, to io.Writer, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fmt.Fprintln(to, p)
		}
	}
}
