// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

var (
	seeds     = flag.Int("seeds", 300, "how many random runs")
	firstSeed = flag.Int("first-seed", 0, "the seed of the first of them")
	stopAfter = flag.Int("stop-after", 5, "how many of them may fail before the rest is left")
	keep      = flag.Bool("keep", true, "keep a run that failed as a test")
)

// Random runs. What one does depends on its seed alone; one that fails prints its
// story, and leaves its choices where FuzzRun finds them: it is a test from then
// on.
func TestSeeds(t *testing.T) {
	began := time.Now()
	coverage, done, failed := runSeeds(t, "FuzzRun", *seeds, Run)
	fmt.Printf("%d runs in %s, %d failed; pods in each state when something happened:\n", done, time.Since(began).Round(time.Second), failed)
	if err := coverage.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// runSeeds runs so many seeds, on all cores, and keeps those that fail as tests of a
// fuzzer. It tells what happened in them, how many ran, and how many failed.
func runSeeds(t *testing.T, fuzzer string, count int, run func(*Choices) Result) (coverage *Coverage, done, failed int) {
	t.Helper()
	if testing.Short() {
		count /= shareOfSeeds
	}
	coverage = NewCoverage()
	began := time.Now()
	var mutex sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	note := func(seed int, choices *Choices, result Result) {
		mutex.Lock()
		defer mutex.Unlock()
		done++
		coverage.Add(result.Coverage)
		if result.Err != nil {
			failed++
			failIn(t, fuzzer, fmt.Sprintf("seed-%d", seed), choices, result)
		}
		if done%1000 == 0 {
			fmt.Printf("%6d of %d runs after %s, %d failed\n", done, count, time.Since(began).Round(time.Second), failed)
		}
	}
	enough := func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return failed >= *stopAfter
	}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range next {
				choices := FromSeed(uint64(seed))
				note(seed, choices, run(choices))
			}
		})
	}
	for seed := *firstSeed; seed < *firstSeed+count && !enough(); seed++ {
		next <- seed
	}
	close(next)
	group.Wait()
	return coverage, done, failed
}

// failIn reports a run that failed, and keeps it as a test of a fuzzer.
func failIn(t *testing.T, fuzzer, name string, choices *Choices, result Result) {
	t.Helper()
	t.Errorf("%s: %v\n%s", name, result.Err, result.Story)
	if !*keep {
		return
	}
	path := filepath.Join("testdata", "fuzz", fuzzer, name)
	corpus := fmt.Sprintf("go test fuzz v1\n[]byte(%q)\n", choices.Taken())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte(corpus), 0o600); err != nil {
		t.Error(err)
	}
	t.Errorf("The run is kept in %s: go test -run %s/%s", path, fuzzer, name)
}

// fuzz lets the fuzzer choose. Its corpus are runs that failed once.
func fuzz(f *testing.F, run func(*Choices) Result) {
	f.Helper()
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, given []byte) {
		if result := run(FromBytes(given)); result.Err != nil {
			t.Errorf("%v\n%s", result.Err, result.Story)
		}
	})
}

func FuzzRun(f *testing.F) { fuzz(f, Run) }
