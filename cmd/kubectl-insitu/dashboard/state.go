// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// maxTombstones bounds how many workloads that are gone are remembered. A page that was
// away for longer gets everything again.
const maxTombstones = 1000

// connection says whether the cluster answers.
type connection struct {
	// State is Connecting, Connected or Lost.
	State string `json:"state"`
	// Error says why the last attempt failed.
	Error string `json:"error,omitempty"`
	// Since is when State began.
	Since time.Time `json:"since"`
}

// The states of a connection.
const (
	connecting = "Connecting"
	connected  = "Connected"
	lost       = "Lost"
)

// position is how much of the state a reader has. Its epoch is that of the state: numbers
// of another server mean nothing.
type position struct {
	epoch string
	seq   uint64
}

// String is the ID of an event of the stream.
func (p position) String() string {
	return p.epoch + "-" + strconv.FormatUint(p.seq, 10)
}

// parsePosition reads the ID of an event; the zero position, which has nothing, if it is
// not one.
func parsePosition(id string) position {
	epoch, number, _ := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return position{}
	}
	return position{epoch, seq}
}

// message is what a reader does not have yet.
type message struct {
	// Full: what is not in Workloads is not there.
	Full       bool              `json:"full"`
	Workloads  []json.RawMessage `json:"workloads"`
	Removed    []key             `json:"removed,omitempty"`
	Connection connection        `json:"connection"`
}

// state is what the source said last. Each part knows at which number it changed, so
// that a reader gets what came after its position, however far behind it is. There is
// no queue: a slow reader skips what was between.
type state struct {
	epoch string

	mu         sync.Mutex
	seq        uint64
	workloads  map[key]entry
	removed    map[key]uint64
	forgotten  uint64 // up to here, removals are not known anymore
	connection connection
	readers    map[chan struct{}]struct{}
}

type entry struct {
	workload report.Workload
	json     []byte
	seq      uint64
}

func newState(epoch string, now time.Time) *state {
	return &state{
		epoch: epoch, seq: 1, workloads: map[key]entry{}, removed: map[key]uint64{},
		connection: connection{State: connecting, Since: now}, readers: map[chan struct{}]struct{}{},
	}
}

// replace puts a new list into the state.
func (s *state) replace(list []report.Workload, now time.Time) error {
	next := make(map[key]entry, len(list))
	for _, workload := range list {
		data, err := json.Marshal(workload)
		if err != nil {
			return fmt.Errorf("encode %s: %w", keyOf(workload.Ref), err)
		}
		next[keyOf(workload.Ref)] = entry{workload: workload, json: data}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.merge(next) || s.connection.State != connected {
		s.seq++
		s.connect(connection{State: connected}, now)
		s.wake()
	}
	return nil
}

// merge takes over what differs, numbered as the next change, and reports whether
// anything did.
func (s *state) merge(next map[key]entry) bool {
	changed := false
	for name, e := range next {
		before, ok := s.workloads[name]
		if ok && bytes.Equal(before.json, e.json) {
			continue
		}
		e.seq = s.seq + 1
		s.workloads[name] = e
		delete(s.removed, name)
		changed = true
	}
	for name := range s.workloads {
		if _, ok := next[name]; !ok {
			delete(s.workloads, name)
			s.removed[name] = s.seq + 1
			changed = true
		}
	}
	if len(s.removed) > maxTombstones {
		clear(s.removed)
		s.forgotten = s.seq + 1
	}
	return changed
}

// fail notes that the cluster could not be read. What was read before stays.
func (s *state) fail(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := connection{State: lost, Error: err.Error()}
	if s.connection.State == next.State && s.connection.Error == next.Error {
		return
	}
	s.seq++
	s.connect(next, now)
	s.wake()
}

func (s *state) connect(next connection, now time.Time) {
	next.Since = now
	if next.State == s.connection.State {
		next.Since = s.connection.Since
	}
	s.connection = next
}

func (s *state) wake() {
	for reader := range s.readers {
		select {
		case reader <- struct{}{}:
		default: // It has yet to look at what came before.
		}
	}
}

// subscribe returns a channel that delivers a value after changes, until stop is called.
func (s *state) subscribe() (changed <-chan struct{}, stop func()) {
	reader := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[reader] = struct{}{}
	return reader, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.readers, reader)
	}
}

// after returns what a reader at a position does not have, and where it is with that.
func (s *state) after(from position) (message, position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{Workloads: []json.RawMessage{}, Connection: s.connection}
	if from.epoch != s.epoch || from.seq > s.seq || from.seq < s.forgotten {
		m.Full = true
		from.seq = 0
	}
	for _, name := range slices.Sorted(maps.Keys(s.workloads)) {
		if e := s.workloads[name]; e.seq > from.seq {
			m.Workloads = append(m.Workloads, e.json)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.removed)) {
		if !m.Full && s.removed[name] > from.seq {
			m.Removed = append(m.Removed, name)
		}
	}
	return m, position{s.epoch, s.seq}
}

// get returns a workload as JSON.
func (s *state) get(name key) (workload report.Workload, data []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.workloads[name]
	return e.workload, e.json, ok
}
