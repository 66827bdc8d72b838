// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long processes may take to end after the command of their suite: as
// long as a lab takes to go down on a loaded machine.
const patience = 2 * time.Minute

// interrupted is what a shell exits with after Ctrl-C.
const interrupted = 130

// runner runs suites and notes what they came to.
type runner struct {
	started time.Time
	// alone: one suite runs, so its lines need not name it.
	alone    bool
	progress *progress
	options
	// passed are the suites that are not run again; nil for none.
	passed *passed

	mu       sync.Mutex
	results  []result
	failures []failure
}

// options say how suites are run.
type options struct {
	// limit is how many percent of the specs may need a second attempt.
	limit int
	// resume: suites that have passed with the same files are not run again.
	resume bool
}

// runSuites prepares what suites share, runs them lane by lane, and prints what each of
// them came to. When the context ends they are interrupted, and waited for.
func runSuites(ctx context.Context, wanted []string, options options) (int, error) {
	chosen, err := chooseLanes(wanted)
	if err != nil {
		return 2, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return 1, err
	}
	r := &runner{started: time.Now(), alone: true, options: options, progress: &progress{began: time.Now()}}
	if options.resume {
		if r.passed, err = readPassed(); err != nil {
			return 2, err
		}
	}
	fmt.Printf("Suites: %s. The first lines of hack/suite say what they are.\n", strings.Join(wanted, ", "))
	fmt.Printf("They run on this machine only, several at a time. What each prints is in %s/SUITE.log as well. Ctrl-C takes everything down.\n", out)
	fmt.Print(forecast(wanted))
	telling, stop := context.WithCancel(ctx)
	defer stop()
	go r.progress.tell(telling, &prefixed{to: os.Stdout, mu: &r.mu}, time.Minute)
	// Suites that compile the same packages at the same time compile them twice.
	if prepared := r.suite(ctx, "prepare", wanted); prepared.isGood() {
		r.alone = len(wanted) == 1
		var group sync.WaitGroup
		for _, l := range chosen {
			group.Go(func() { r.lane(ctx, l) })
		}
		group.Wait()
	}

	return r.finish(ctx)
}

// lane runs the suites of a lane in turn.
func (r *runner) lane(ctx context.Context, l lane) {
	for _, suite := range l {
		if ctx.Err() == nil {
			r.suite(ctx, suite, nil)
		}
	}
}

// suite runs one suite.
func (r *runner) suite(ctx context.Context, suite string, args []string) result {
	if before, is := r.passed.of(suite); is {
		fmt.Printf("\n==> %s has passed before with these files\n", suite)
		return r.note(before)
	}
	fmt.Printf("\n==> %s\n", suite)
	began := time.Now()
	done := result{Suite: suite}
	if err := errors.Join(os.RemoveAll(reportOf(suite)), os.RemoveAll(specsOf(suite))); err != nil {
		return r.note(done.failed(err))
	}
	usageFile := filepath.Join(out, suite+".usage.json")
	command, err := r.command(ctx, append([]string{"own", usageFile, patience.String(), "hack/suite", suite}, args...), slices.Contains(yielding, suite))
	if err != nil {
		return r.note(done.failed(err))
	}
	log, err := os.Create(filepath.Join(out, suite+".log"))
	if err != nil {
		return r.note(done.failed(err))
	}
	defer log.Close()
	counted := r.progress.start(suite)
	defer counted.end()
	lines := &prefixed{to: os.Stdout, mu: &r.mu, see: counted.see}
	if !r.alone {
		lines.prefix = fmt.Sprintf("%-9s | ", suite)
	}
	command.Stdout = io.MultiWriter(log, lines)
	command.Stderr = command.Stdout
	done.Status = statusOf(command.Run())
	lines.flush()
	done.Wall = time.Since(began)
	done.usage = readUsage(usageFile)
	report, err := readReport(suite)
	if err == nil {
		done.attempts, err = readAttempts(suite)
	}
	if err != nil {
		return r.note(done.failed(err))
	}

	return r.note(r.keep(done.counted(report)), failuresIn(suite, report)...)
}

// readUsage returns what a suite took, as it was written into a file; nothing if it was not.
func readUsage(file string) usage {
	var taken usage
	if raw, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(raw, &taken)
	}

	return taken
}

// command returns this program with other arguments, in a process group of its own,
// which is interrupted when the context ends.
func (r *runner) command(ctx context.Context, args []string, yields bool) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = append([]string{self}, args...)
	if yields {
		args = append([]string{"nice", "-n", "5"}, args...)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // this program
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error {
		fmt.Println("Interrupted: waiting until everything is taken down")

		return syscall.Kill(-command.Process.Pid, syscall.SIGINT)
	}

	return command, nil
}

// failed is a result of a suite that could not be run.
func (r result) failed(err error) result {
	fmt.Fprintln(os.Stderr, "suites:", err)
	r.Status = 1

	return r
}

// statusOf returns what a command exited with.
func statusOf(err error) int {
	exit := &exec.ExitError{}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "suites:", err)

		return 1
	}
}

// note keeps and prints what a suite came to.
func (r *runner) note(done result, failures ...failure) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, done)
	r.failures = append(r.failures, failures...)
	fmt.Printf("--- %s\n", done)

	return done
}

// keep keeps a suite that has passed, for the run that goes on.
func (r *runner) keep(done result) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.passed.add(done); err != nil {
		return done.failed(err)
	}

	return done
}

// finish prints all results, keeps them, and returns the status to exit with.
func (r *runner) finish(ctx context.Context) (int, error) {
	wall := time.Since(r.started)
	status, verdict := 0, "ok"
	for _, done := range r.results {
		if !done.isGood() {
			status, verdict = 1, "FAILED"
		}
	}
	var seconds strings.Builder
	if !checkAttempts(&seconds, r.results, r.limit) {
		status, verdict = 1, "FAILED"
	}
	if ctx.Err() != nil {
		status, verdict = interrupted, "interrupted"
	}
	sum := total(r.results)
	lines := []string{fmt.Sprintf("\ntest: %s, in %d min %d s, CPU %.0f min on %d cores", verdict, int(wall.Minutes()), int(wall.Seconds())%60, sum.CPU.Minutes(), runtime.NumCPU())}
	for _, done := range r.results {
		lines = append(lines, "  "+done.String())
	}
	fmt.Println(strings.Join(lines, "\n"))
	fmt.Printf("%d passed, %d failed, %d skipped\n", sum.Tests-sum.Failed-sum.Skipped, sum.Failed, sum.Skipped)
	fmt.Print(seconds.String())
	printFailures(os.Stdout, r.failures)

	return status, lastRun{Cores: runtime.NumCPU(), Wall: wall, Results: r.results}.save()
}
