// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// ticks is how many of the units in which /proc counts CPU time make a second.
const ticks = 100

// meter measures the CPU time of all descendants of this process. What the kernel
// counts for those that were waited for is not all: when the first process of a PID
// namespace ends, as that of a lab, the others are killed, and their time is lost.
type meter struct {
	mu sync.Mutex
	// last is what was counted, lost what was counted before and is no more.
	last, lost time.Duration
}

// run measures until the process ends.
func (m *meter) run(every time.Duration) {
	for range time.Tick(every) {
		m.measure()
	}
}

// measure returns the CPU time of all descendants so far.
func (m *meter) measure() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	counted := cpuOfChildren()
	for _, stat := range descendants() {
		counted += time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * time.Second / ticks //nolint:gosec // years in units of 10 ms
	}
	if counted < m.last {
		m.lost += m.last - counted
	}
	m.last = counted

	return m.last + m.lost
}

// descendants returns what is known of the children of this process and of theirs.
func descendants() []procfs.ProcStat {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	byParent := map[int][]procfs.ProcStat{}
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil { // else it has just ended
			byParent[stat.PPID] = append(byParent[stat.PPID], stat)
		}
	}
	found := byParent[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, byParent[found[i].PID]...)
	}

	return found
}

// cpuOfChildren returns the time of the children that were waited for, and of theirs.
func cpuOfChildren() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
