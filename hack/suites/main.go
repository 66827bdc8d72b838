// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command suites runs test suites side by side, owns every process that they start, and
// says what each of them took. hack/test builds and calls it:
//
//	suites run [--second-attempts=P%] [--resume] SUITE...    runs suites: those that share a
//		lane one after the other. It fails if more specs than that needed a second attempt.
//		With --resume, it goes on after a run that ended early: suites that have passed with
//		the same files, at the same LEVEL, are not run again
//	suites own FILE PATIENCE COMMAND...    runs one command, waits so long for what it leaves,
//		and writes what it took into a file
//	suites times    prints the slowest tests of the last run, and its table into CONTRIBUTING.md
//
// How a suite is run is in hack/suite.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// out is where suites leave their reports, and this program what they took.
const out = ".out"

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run returns the status to exit with.
func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("no verb is named; verbs: run, own, times")
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "run":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		options, rest, err := cutOptions(rest)
		if err != nil {
			return 2, fmt.Errorf("run: %w", err)
		}
		remove, err := ownTemporary()
		if err != nil {
			return 1, err
		}
		defer remove()

		return runSuites(ctx, rest, options)
	case "own":
		if len(rest) < 3 {
			return 2, errors.New("own: name a file, a duration, and a command with its arguments")
		}
		patience, err := time.ParseDuration(rest[1])
		if err != nil {
			return 2, fmt.Errorf("own: PATIENCE is a duration such as 30s: %w", err)
		}

		return own(rest[0], patience, rest[2:])
	case "times":
		return 0, writeTimes(os.Stdout, "CONTRIBUTING.md")
	default:
		return 2, fmt.Errorf("no verb %q; verbs: run, own, times", verb)
	}
}

// cutOptions returns the options, and the other arguments. Without --second-attempts, all specs
// may need a second one.
func cutOptions(args []string) (given options, rest []string, err error) {
	given.limit = 100
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.Func("second-attempts", "how many of the specs may need a second attempt, as a percentage", func(text string) error {
		given.limit, err = parsePercentage(text)

		return err
	})
	flags.BoolVar(&given.resume, "resume", false, "do not run suites again that have passed with the same files")
	if err := flags.Parse(args); err != nil {
		return given, nil, err
	}

	return given, flags.Args(), nil
}
