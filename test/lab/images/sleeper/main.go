// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command sleeper is a container that behaves as a test asks: it may end by
// itself, become ready late, or take its time to stop. It answers HTTP on the
// port of -listen:
//
//	/       version, host name and environment, as JSON
//	/ready  200 once the program is ready, 503 before
//	/load   what became of the requests of -load, as JSON
//	/burn   200 after it has used the CPU for as long as ?for= says, such as 5ms
//
// With -load it asks a URL again and again, each time on a new connection, as
// clients do that balance over the pods of a Service.
//
// Every flag can also be set by an environment variable, -exit-after by
// SLEEPER_EXIT_AFTER and so on; the flag wins.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// version is set by the linker: v1, v2, v3 or crash.
var version = "unversioned"

// crash is the version that ends with exit code 1 after a second unless it is
// told otherwise.
const crash = "crash"

type options struct {
	listen     string
	exitAfter  time.Duration
	exitCode   int
	readyAfter time.Duration
	ignoreTerm time.Duration
	wait       time.Duration
	load       string
}

func main() {
	opts, err := parse(os.Args[1:], os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sleeper:", err)
		os.Exit(2)
	}
	if opts.wait > 0 {
		time.Sleep(opts.wait)
		return
	}
	os.Exit(run(opts))
}

func parse(args []string, getenv func(string) string) (options, error) {
	var opts options
	if version == crash {
		opts.exitAfter, opts.exitCode = time.Second, 1
	}
	flags := flag.NewFlagSet("sleeper", flag.ContinueOnError)
	flags.StringVar(&opts.listen, "listen", ":8080", "address to answer HTTP on, or empty for none")
	flags.DurationVar(&opts.exitAfter, "exit-after", opts.exitAfter, "end after this time, 0 for never")
	flags.IntVar(&opts.exitCode, "exit-code", opts.exitCode, "exit code after -exit-after")
	flags.DurationVar(&opts.readyAfter, "ready-after", 0, "answer /ready with 503 for this time")
	flags.DurationVar(&opts.ignoreTerm, "ignore-term", 0, "keep running for this time after SIGTERM")
	flags.DurationVar(&opts.wait, "wait", 0, "only sleep for this time and end, for use in hooks")

	flags.StringVar(&opts.load, "load", "", "URL to ask every 20ms")

	var err error
	flags.VisitAll(func(f *flag.Flag) {
		variable := "SLEEPER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(variable); value != "" && err == nil {
			if err = f.Value.Set(value); err != nil {
				err = fmt.Errorf("read %s=%s: %w", variable, strconv.Quote(value), err)
			}
		}
	})
	if err != nil {
		return opts, err
	}
	return opts, flags.Parse(args)
}

// run returns the exit code.
func run(opts options) int {
	start := time.Now()
	fmt.Printf("sleeper %s started\n", version)
	requests := &load{}
	if opts.load != "" {
		go requests.run(opts.load)
	}
	failed := make(chan error, 1)
	if opts.listen != "" {
		go func() { failed <- http.ListenAndServe(opts.listen, handler(start.Add(opts.readyAfter), requests)) }()
	}
	var done <-chan time.Time
	if opts.exitAfter > 0 {
		done = time.After(opts.exitAfter)
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, "sleeper: serve:", err)
		return 1
	case <-done:
		fmt.Printf("sleeper %s ends with %d\n", version, opts.exitCode)
		return opts.exitCode
	case <-term:
		fmt.Printf("sleeper %s stops in %s\n", version, opts.ignoreTerm)
		time.Sleep(opts.ignoreTerm)
		return 0
	}
}

func handler(readyAt time.Time, requests *load) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if time.Now().Before(readyAt) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		hostname, _ := os.Hostname()
		w.Header().Set("Content-Type", "application/json")
		// A client that is gone cannot be told.
		_ = json.NewEncoder(w).Encode(map[string]any{
			"version":  version,
			"hostname": hostname,
			"env":      environment(),
		})
	})
	mux.HandleFunc("GET /load", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(requests.report())
	})
	mux.Handle("GET /burn", &burner{})
	return mux
}

// burner answers requests that cost CPU time. It takes them one at a time, so
// that the time of each is its own.
type burner struct{ mu sync.Mutex }

func (b *burner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cost, err := time.ParseDuration(r.FormValue("for"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for end := cpuTime() + cost; cpuTime() < end && r.Context().Err() == nil; {
	}
}

// cpuTime is what the process has used of CPUs. Unlike the time of day it
// stands still while other processes have them.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	// It fails only for arguments that are not these.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// load counts what becomes of requests.
type load struct {
	mu       sync.Mutex
	ok       int
	failures []string
}

// run asks the URL for ever. An answer other than 200 is a failure.
func (l *load) run(url string) {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range time.Tick(20 * time.Millisecond) {
		go func() { l.count(ask(client, url)) }()
	}
}

func ask(client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func (l *load) count(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.ok++
	} else {
		l.failures = append(l.failures, time.Now().UTC().Format(time.RFC3339Nano)+" "+err.Error())
	}
}

func (l *load) report() map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return map[string]any{"ok": l.ok, "failed": len(l.failures), "failures": l.failures[:min(len(l.failures), 20)]}
}

func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}
