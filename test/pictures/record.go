// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// rollout are the commands that are recorded.
var rollout = []command{
	{words: `kubectl label deployment web insitu.dev/update-policy=InPlaceIfPossible`},
	{words: `kubectl set image deployment/web nginx=nginx:latest`},
	{
		words: `kubectl get pods -l app=web -o custom-columns-file=pods.txt --watch`,
		until: `pods=$(kubectl get pods -l app=web -o jsonpath='{.items[?(@.spec.containers[0].image=="nginx:alpine")].metadata.name}') &&
			kubectl wait pod $pods --for=jsonpath='{.spec.containers[0].image}'=nginx:latest --timeout=3m &&
			kubectl wait pod $pods --for=condition=Ready --timeout=3m`,
	},
}

// command is what is typed. One that goes on is ended by Ctrl-C, a while after another one, which
// is not shown, has ended.
type command struct{ words, until string }

// line is a line on the screen of a terminal, from a time on. A prompt is typed until typed.
type line struct {
	at, typed time.Duration
	text      string
	isPrompt  bool
}

// recording is what a terminal has shown.
type recording struct {
	lines []line
	took  time.Duration
}

const (
	// folder has the files that the commands read.
	folder = "test/pictures"
	// keyTime is how long it takes to type a character, pause how long nothing is typed after a
	// command has ended.
	keyTime = 25 * time.Millisecond
	pause   = 700 * time.Millisecond
	// linger is how long it is shown that nothing changes any more.
	linger = time.Second
)

// record runs commands, one after the other, and keeps what they print and when.
func record(ctx context.Context, commands []command) (*recording, error) {
	made := &recording{}
	for _, c := range commands {
		typed := made.took + time.Duration(len(c.words))*keyTime
		made.lines = append(made.lines, line{at: made.took, typed: typed, text: c.words, isPrompt: true})
		took, err := made.follow(ctx, c, typed)
		if err != nil {
			return nil, err
		}
		made.took = typed + took + pause
	}
	return made, nil
}

// wrap cuts a text into lines that fit on the screen, as a terminal does.
func wrap(text string) []string {
	var lines []string
	runes := []rune(text)
	for len(runes) > columns {
		lines, runes = append(lines, string(runes[:columns])), runes[columns:]
	}
	return append(lines, string(runes))
}

// follow runs a command that was typed at a time, and returns how long it took.
func (r *recording) follow(ctx context.Context, c command, typed time.Duration) (time.Duration, error) {
	said := &strings.Builder{}
	process := exec.Command("bash", "-c", "exec "+c.words) //nolint:gosec,noctx // the commands are those above; the context ends it below
	process.Dir, process.Stderr = folder, said
	output, err := process.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := process.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", c.words, err)
	}
	ended := make(chan error, 1)
	if c.until != "" {
		go func() { ended <- interrupt(ctx, process, c.until) }()
	}
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		at := typed + time.Since(began)
		for _, text := range wrap(strings.TrimRight(scanner.Text(), " ")) {
			r.lines = append(r.lines, line{at: at, text: text})
		}
	}
	err = process.Wait()
	took := time.Since(began)
	if c.until != "" {
		r.lines = append(r.lines, line{at: typed + took, text: "^C"})
		err = <-ended
	}
	if err != nil {
		return 0, fmt.Errorf("run %s: %w: %s", c.words, err, said)
	}
	return took, scanner.Err()
}

// interrupt ends a process as Ctrl-C does, a while after a command has ended.
func interrupt(ctx context.Context, process *exec.Cmd, command string) error {
	said, err := exec.CommandContext(ctx, "bash", "-c", command).CombinedOutput() //nolint:gosec // the commands are those above
	if err == nil {
		time.Sleep(linger)
	} else {
		err = fmt.Errorf("run %s: %w: %s", command, err, said)
	}
	return errors.Join(err, process.Process.Signal(syscall.SIGINT))
}
