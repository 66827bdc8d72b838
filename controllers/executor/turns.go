// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// countingPause is the time that the disruption controller is given to count a
	// pod that was reported not ready, before it is asked for the next one of the
	// namespace. A dry run takes nothing off the budget.
	countingPause = 5 * time.Second
	// turnPause is when a turn is asked for again that another workload has.
	turnPause = time.Second
)

// toBeCounted is why a turn is not to be had while a pod is counted.
const toBeCounted = "another pod of the namespace was taken out of service just now, and is to be counted first"

// Turns are given to the workloads of a namespace whose pods PodDisruptionBudgets protect: one
// after the other may take a pod out of service. All controllers of a manager share them, since a
// budget may protect pods of several kinds. What is lost with the manager is a pause of seconds.
type Turns struct {
	mu sync.Mutex
	// last holds when the last pod of a namespace was given up, asking the namespaces of which
	// a workload asks for one.
	last   map[string]time.Time
	asking sets.Set[string]
}

// NewTurns returns turns of which none has been taken.
func NewTurns() *Turns {
	return &Turns{last: map[string]time.Time{}, asking: sets.New[string]()}
}

// take takes the turn of a namespace, which is to be handed back. If that is not to be had now, it
// returns when to ask again, and why.
func (t *Turns) take(namespace string, now time.Time) (again time.Time, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.last[namespace].Add(countingPause); now.Before(next) {
		return next, toBeCounted
	}
	if t.asking.Has(namespace) {
		return now.Add(turnPause), "another workload of the namespace asks for an eviction now"
	}
	t.asking.Insert(namespace)
	return time.Time{}, ""
}

// handBack ends a turn, in which a pod was given up or not. now is when the API server has said so,
// which may be long after the turn was taken.
func (t *Turns) handBack(namespace string, givesUp bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking.Delete(namespace)
	if !givesUp {
		return
	}
	for other, at := range t.last {
		if now.Sub(at) > countingPause {
			delete(t.last, other)
		}
	}
	t.last[namespace] = now
}
