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
	// tries are the last ones on nodes, by node.
	tries map[string]try
	// refusedSince is since when the API server takes no pod; zero if it takes them. words are what
	// it says, and quiet is until when it is not asked.
	refusedSince, quiet time.Time
	words               string
}

// try is the last one on a node: its number, and when its pod was made; refused is when the API
// server refused the next one, or the first.
type try struct {
	number      int
	at, refused time.Time
}

// accept notes that a pod was made.
func (m *memory) accept(node string, number int, now time.Time) {
	m.tries[node] = try{number: number, at: now}
	m.refusedSince, m.quiet, m.words = time.Time{}, time.Time{}, ""
}

// refuse notes that a pod was refused.
func (m *memory) refuse(node, words string, now time.Time) {
	last := m.tries[node]
	last.refused = now
	m.tries[node], m.words = last, words
	if m.refusedSince.IsZero() {
		m.refusedSince = now
	}
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
