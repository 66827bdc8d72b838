// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// maxEvents bounds how many events are sent; the newest are.
const maxEvents = 500

// timelineAnswer is what became of a workload.
type timelineAnswer struct {
	// Now is the clock of the server, Started since when it looks.
	Now     time.Time `json:"now"`
	Started time.Time `json:"started"`
	Spans   []Span    `json:"spans"`
	// Forgotten is how many older spans there were.
	Forgotten int     `json:"forgotten,omitempty"`
	Events    []Event `json:"events"`
	// EventsError says why events could not be read; the rest is there.
	EventsError string `json:"eventsError,omitempty"`
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	name := keyFrom(r)
	workload, _, ok := s.state.get(name)
	if !ok {
		writeError(w, http.StatusNotFound, fmt.Sprintf("%s was not found", name))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer := timelineAnswer{Started: s.started}
	events, err := s.source.Events(ctx, workload.Ref)
	if err != nil {
		answer.EventsError = err.Error()
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	answer.Events = append([]Event{}, events[max(0, len(events)-maxEvents):]...)
	answer.Spans, answer.Forgotten = s.timelines.spans(name)
	answer.Now = s.clock.Now()
	writeJSON(w, http.StatusOK, answer)
}
