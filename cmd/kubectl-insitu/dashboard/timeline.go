// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// maxSpans bounds what is remembered of one workload. The oldest goes first; where each
// pod is now always stays.
const maxSpans = 5000

// Span is a time that a pod, or the workload, spent in one state.
type Span struct {
	// Pod is the name of the pod; empty for the workload, whose states are its phases.
	Pod     string    `json:"pod,omitempty"`
	UID     types.UID `json:"uid,omitempty"`
	State   string    `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	// Updated: the pod was at the update revision.
	Updated bool      `json:"updated,omitempty"`
	From    time.Time `json:"from"`
	// To is when it ended; zero while it lasts.
	To time.Time `json:"to,omitzero"`
}

// is reports whether the span is of the same state as another one. The message is not
// part of it: it may count seconds.
func (s *Span) is(other *Span) bool {
	return s.UID == other.UID && s.State == other.State && s.Reason == other.Reason && s.Updated == other.Updated
}

// timelines remember, in memory, what became of workloads since the dashboard was
// started.
type timelines struct {
	mu    sync.Mutex
	limit int
	lines map[key]*timeline
}

func newTimelines(limit int) *timelines {
	return &timelines{limit: limit, lines: map[key]*timeline{}}
}

// record notes where all workloads are. Those that are gone are forgotten.
func (t *timelines) record(list []report.Workload, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	present := sets.New[key]()
	for i := range list {
		name := keyOf(list[i].Ref)
		present.Insert(name)
		line, ok := t.lines[name]
		if !ok || line.uid != list[i].UID {
			line = &timeline{uid: list[i].UID, open: map[string]*Span{}}
			t.lines[name] = line
		}
		line.record(&list[i], now)
		line.trim(t.limit)
	}
	for name := range t.lines {
		if !present.Has(name) {
			delete(t.lines, name)
		}
	}
}

// spans returns those of a workload in the order in which they began, and how many were
// forgotten.
func (t *timelines) spans(name key) (spans []Span, forgotten int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, ok := t.lines[name]
	if !ok {
		return []Span{}, 0
	}
	spans = make([]Span, 0, len(line.spans))
	for _, span := range line.spans {
		spans = append(spans, *span)
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	return spans, line.forgotten
}

// timeline is that of one workload.
type timeline struct {
	uid       types.UID
	spans     []*Span          // in the order in which they were seen
	open      map[string]*Span // the last one of each pod, and of the workload
	forgotten int
}

func (t *timeline) record(w *report.Workload, now time.Time) {
	present := sets.New("")
	t.see(&Span{State: string(w.Phase), Reason: w.Reason, Message: w.Message, From: now})
	for i := range w.Pods {
		pod := &w.Pods[i]
		present.Insert(pod.Name)
		t.see(&Span{
			Pod: pod.Name, UID: pod.UID, State: pod.State, Reason: pod.Reason, Message: pod.Message, Updated: pod.Updated,
			From: t.began(pod, now),
		})
	}
	for name, span := range t.open {
		if !present.Has(name) {
			span.To = now
			delete(t.open, name)
		}
	}
}

// began returns when a pod came to where it is. What the report says counts if it can
// be: after what was seen before, and not in the future.
func (t *timeline) began(pod *report.Pod, now time.Time) time.Time {
	before, known := t.open[pod.Name]
	since := pod.Since.Time
	if since.IsZero() || since.After(now) || known && since.Before(before.From) {
		return now
	}
	return since
}

func (t *timeline) see(span *Span) {
	before, ok := t.open[span.Pod]
	if ok && before.is(span) {
		before.Message = span.Message
		return
	}
	if ok {
		before.To = span.From
	}
	t.open[span.Pod] = span
	t.spans = append(t.spans, span)
}

// trim forgets the oldest spans that have ended.
func (t *timeline) trim(limit int) {
	excess := len(t.spans) - limit
	if excess <= 0 {
		return
	}
	t.spans = slices.DeleteFunc(t.spans, func(span *Span) bool {
		if excess <= 0 || span.To.IsZero() {
			return false
		}
		excess--
		t.forgotten++
		return true
	})
}
