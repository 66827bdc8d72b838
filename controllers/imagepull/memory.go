// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// memory is what a manager knows of a job that neither its status nor its pods tell.
type memory struct {
	job types.UID
	// passed is when the manager looked last, reported when it wrote the status last.
	passed, reported time.Time
	// pull is what the tries are about; tries are the last ones on nodes, by node.
	pull  string
	tries map[string]try
	// refused is since when the API server takes no pod, and refusedLast when it refused the last
	// one; both are zero if it takes them. inARow is how many it has refused since it was not asked,
	// quiet until when it is not asked, and words what it says.
	refused, refusedLast, quiet time.Time
	inARow                      int
	words                       string
}

// try is the last one on a node: its number, and when its pod was made; refused is when the API
// server refused the next one, or the first.
type try struct {
	number      int
	at, refused time.Time
}

// about forgets tries that were about another pull.
func (m *memory) about(pull string) {
	if m.pull != pull {
		m.pull = pull
		clear(m.tries)
	}
}

// accept notes that a pod was made.
func (m *memory) accept(node string, number int, now time.Time) {
	m.tries[node] = try{number: number, at: now}
	m.refused, m.refusedLast, m.quiet, m.inARow = time.Time{}, time.Time{}, time.Time{}, 0
}

// refuse notes that a pod was refused, and reports whether none was accepted for so long that it is
// not waited for. That time begins again when the manager has not asked for a while.
func (m *memory) refuse(node, words string, now time.Time) (isOver bool) {
	last := m.tries[node]
	last.refused = now
	m.tries[node], m.words = last, words
	if m.refused.IsZero() || now.Sub(m.refusedLast) > 2*refusalPeriod {
		m.refused = now
	}
	m.refusedLast = now
	if now.Sub(m.refused) >= refusalEnd {
		return true
	}
	m.inARow++
	if m.inARow >= enoughRefusals {
		m.inARow, m.quiet = 0, now.Add(refusalPeriod)
	}
	return false
}

// keep forgets the tries on nodes that are no targets, or have succeeded.
func (m *memory) keep(targets []target, succeeded sets.Set[string]) {
	kept := make(map[string]try, len(m.tries))
	for _, node := range targets {
		if last, isKnown := m.tries[node.name]; isKnown && !succeeded.Has(node.name) {
			kept[node.name] = last
		}
	}
	m.tries = kept
}

// memories are those of all jobs that are under way. They are safe for concurrent use; one of
// them is not.
type memories struct {
	mu    sync.Mutex
	ofJob map[types.NamespacedName]*memory
}

// of returns the memory of a job. One of the same name that was there before has another.
func (m *memories) of(name types.NamespacedName, job types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.ofJob[name]
	if known == nil || known.job != job {
		known = &memory{job: job, tries: map[string]try{}}
		if m.ofJob == nil {
			m.ofJob = map[types.NamespacedName]*memory{}
		}
		m.ofJob[name] = known
	}
	return known
}

// forget forgets a job.
func (m *memories) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ofJob, name)
}
