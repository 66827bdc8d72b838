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

var nativeSeeds = flag.Int("native-seeds", 30, "how many random runs of native workloads")

// Random runs of native workloads, as TestSeeds.
func TestNativeSeeds(t *testing.T) {
	var mutex sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	failed := 0
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range next {
				choices := FromSeed(uint64(seed))
				result := RunNative(choices)
				mutex.Lock()
				if result.Err != nil {
					failed++
					failIn(t, "FuzzRunNative", fmt.Sprintf("seed-%d", seed), choices, result)
				}
				mutex.Unlock()
			}
		})
	}
	for seed := *firstSeed; seed < *firstSeed+*nativeSeeds && failed < *stopAfter; seed++ {
		next <- seed
	}
	close(next)
	group.Wait()
}

// FuzzRunNative lets the fuzzer choose. Its corpus are runs that failed once.
func FuzzRunNative(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, given []byte) {
		if result := RunNative(FromBytes(given)); result.Err != nil {
			t.Errorf("%v\n%s", result.Err, result.Story)
		}
	})
}
