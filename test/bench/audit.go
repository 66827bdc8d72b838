// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/insitu-dev/insitu/test/auditlog"
)

// request is one request as the audit log has it.
type request struct {
	user string
	at   time.Time
	// what is the verb and the resource, "patch pods/status", with " (dry run)"
	// or the status code where nothing was written.
	what string
}

// window is the time in which the requests of one user count.
type window struct {
	user     string
	from, to time.Time
}

// readAudit returns the requests of users in an audit log.
func readAudit(path string, users ...string) ([]request, error) {
	events, err := auditlog.Read(path, users...)
	if err != nil {
		return nil, err
	}
	return requestsOf(events), nil
}

func requestsOf(events []auditv1.Event) []request {
	requests := make([]request, 0, len(events))
	for i := range events {
		requests = append(requests, request{events[i].User.Username, events[i].RequestReceivedTimestamp.Time, describe(&events[i])})
	}
	return requests
}

func describe(event *auditv1.Event) string {
	what := event.Verb
	if resource := auditlog.Resource(event); resource != "" {
		what += " " + resource
	}
	if auditlog.IsDryRun(event) {
		what += " (dry run)"
	}
	if code := auditlog.Code(event); code >= http.StatusBadRequest {
		what += fmt.Sprintf(" (%d)", code)
	}
	return what
}

// count returns how many requests of each kind are in a window.
func (w window) count(requests []request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if r.user == w.user && !r.at.Before(w.from) && r.at.Before(w.to) {
			counts[r.what]++
		}
	}
	return counts
}

// podWrites are the requests that change a pod.
var podWrites = []string{"create pods", "update pods", "patch pods", "patch pods/status", "patch pods/resize", "delete pods"}

// podWritesIn returns how many of the counted requests changed a pod.
func podWritesIn(counts map[string]int) int {
	writes := 0
	for _, what := range podWrites {
		writes += counts[what]
	}
	return writes
}
