// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

var volumeSeeds = flag.Int("volume-seeds", 60, "how many random runs of sets with volumes")

// Random runs of sets whose pods have volumes, as TestSeeds.
func TestVolumeSeeds(t *testing.T) {
	var mutex sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	failed := 0
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range next {
				choices := FromSeed(uint64(seed))
				result := RunVolumes(choices)
				mutex.Lock()
				if result.Err != nil {
					failed++
					failIn(t, "FuzzRunVolumes", fmt.Sprintf("seed-%d", seed), choices, result)
				}
				mutex.Unlock()
			}
		})
	}
	for seed := *firstSeed; seed < *firstSeed+*volumeSeeds && failed < *stopAfter; seed++ {
		next <- seed
	}
	close(next)
	group.Wait()
}

var recreateSeeds = flag.Int("recreate-seeds", 40, "how many random runs of sets whose claims are made anew")

// Random runs of sets whose claims are made anew, as TestSeeds.
func TestRecreateSeeds(t *testing.T) {
	failed := 0
	for seed := *firstSeed; seed < *firstSeed+*recreateSeeds && failed < *stopAfter; seed++ {
		choices := FromSeed(uint64(seed))
		if result := RunRecreations(choices); result.Err != nil {
			failed++
			failIn(t, "FuzzRunRecreations", fmt.Sprintf("seed-%d", seed), choices, result)
		}
	}
}

// FuzzRunRecreations lets the fuzzer choose. Its corpus are runs that failed once.
func FuzzRunRecreations(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, given []byte) {
		if result := RunRecreations(FromBytes(given)); result.Err != nil {
			t.Errorf("%v\n%s", result.Err, result.Story)
		}
	})
}

// FuzzRunVolumes lets the fuzzer choose. Its corpus are runs that failed once.
func FuzzRunVolumes(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, given []byte) {
		if result := RunVolumes(FromBytes(given)); result.Err != nil {
			t.Errorf("%v\n%s", result.Err, result.Story)
		}
	})
}
