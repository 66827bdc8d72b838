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

// FuzzRunVolumes lets the fuzzer choose. Its corpus are runs that failed once.
func FuzzRunVolumes(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, given []byte) {
		if result := RunVolumes(FromBytes(given)); result.Err != nil {
			t.Errorf("%v\n%s", result.Err, result.Story)
		}
	})
}
