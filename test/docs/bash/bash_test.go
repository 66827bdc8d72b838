// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package bash

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func start(t *testing.T) *Shell {
	t.Helper()
	shell, err := Start(t.TempDir(), t.TempDir(), append(os.Environ(), "GREETING=hello"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shell.Stop)
	return shell
}

func TestRun(t *testing.T) {
	shell := start(t)
	for _, test := range []struct {
		command, output string
		code            int
	}{
		{"echo $GREETING; echo world >&2", "hello\nworld\n", 0},
		{"name=insitu; cd /; greet() { echo \"I am $1\"; }", "", 0},
		{"greet $name; pwd", "I am insitu\n/\n", 0},
		{"cat <<END\na\nEND", "a\n", 0},
		{"cat", "", 0}, // nothing to read, so it ends
		{"sleep 3600 &", "", 0},
		{"(exit 3)", "", 3},
		{"false\ntrue", "", 0},
	} {
		output, code, err := shell.Run(t.Context(), test.command)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred(), test.command)
		g.Expect(output).To(Equal(test.output), test.command)
		g.Expect(code).To(Equal(test.code), test.command)
	}
}

func TestRunFindsMistakesInSyntax(t *testing.T) {
	g := NewWithT(t)
	output, code, err := start(t).Run(t.Context(), "echo 'a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(output).To(ContainSubstring("unexpected EOF"))
	g.Expect(code).NotTo(BeZero())
}

func TestRunEndsWhatTakesTooLong(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	begun := filepath.Join(t.TempDir(), "begun")
	go func() { // its time is over once it has begun, however late that is
		defer cancel(context.DeadlineExceeded)
		g.Eventually(begun).WithTimeout(time.Minute).Should(BeAnExistingFile())
	}()
	output, _, err := start(t).Run(ctx, "echo begun; touch "+begun+"; sleep 3600")
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(err).To(MatchError(ContainSubstring("took too long")))
	g.Expect(output).To(Equal("begun\n"))
}

func TestRunSaysThatTheShellHasEnded(t *testing.T) {
	_, _, err := start(t).Run(t.Context(), "exit 0")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("ended its shell")))
}

func TestStopEndsWhatWasStarted(t *testing.T) {
	g := NewWithT(t)
	shell := start(t)
	output, _, err := shell.Run(t.Context(), "sleep 3600 & echo $!")
	g.Expect(err).NotTo(HaveOccurred())
	shell.Stop()
	g.Eventually(func() bool {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(output) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	}).WithTimeout(time.Minute).Should(BeTrue(), "the command goes on")
}
