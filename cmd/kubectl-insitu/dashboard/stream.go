// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// serveStream sends server-sent events: all there is at first, or what changed since the
// event that a reader names when it comes back; then what changes, and a beat when
// nothing has for a while.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	changed, stop := s.state.subscribe()
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &stream{writer: w, controller: http.NewResponseController(w)}
	at := parsePosition(r.Header.Get("Last-Event-ID"))
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	// A reader that comes back is told even that it missed nothing.
	for isNew := true; ; isNew = false {
		m, now := s.state.after(at)
		if isNew || now != at {
			if err := stream.send("change", now.String(), m); err != nil {
				return
			}
		}
		at = now
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-beat.C:
			if err := stream.send("beat", "", struct{}{}); err != nil {
				return
			}
		}
	}
}

// stream writes server-sent events.
type stream struct {
	writer     http.ResponseWriter
	controller *http.ResponseController
}

func (s *stream) send(event, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event, err)
	}
	if err := s.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	// JSON has no line breaks, so it is one line of data.
	if _, err := fmt.Fprintf(s.writer, "event: %s\n%sdata: %s\n\n", event, id, text); err != nil {
		return err
	}
	return s.controller.Flush()
}
