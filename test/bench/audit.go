// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// maxAuditLine is more than the longest entry: the creation of a large object.
const maxAuditLine = 8 << 20

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
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	defer file.Close()
	return parseAudit(file, users...)
}

func parseAudit(log io.Reader, users ...string) ([]request, error) {
	var requests []request
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		if !mentionsAny(lines.Bytes(), users) {
			continue
		}
		event := auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if counts(&event) {
			requests = append(requests, request{event.User.Username, event.RequestReceivedTimestamp.Time, describe(&event)})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return requests, nil
}

// mentionsAny saves decoding the lines of others, which are most of them.
func mentionsAny(line []byte, users []string) bool {
	for _, user := range users {
		if bytes.Contains(line, []byte(`"`+user+`"`)) {
			return true
		}
	}
	return false
}

// counts reports whether an entry stands for a request. A watch has two, at its
// start and at its end; all others have one.
func counts(event *auditv1.Event) bool {
	if event.Verb == "watch" {
		return event.Stage == auditv1.StageResponseStarted
	}
	return event.Stage == auditv1.StageResponseComplete
}

func describe(event *auditv1.Event) string {
	what := event.Verb
	if ref := event.ObjectRef; ref != nil {
		what += " " + ref.Resource
		if ref.Subresource != "" {
			what += "/" + ref.Subresource
		}
	}
	if strings.Contains(event.RequestURI, "dryRun=All") {
		what += " (dry run)"
	}
	if status := event.ResponseStatus; status != nil && status.Code >= http.StatusBadRequest {
		what += fmt.Sprintf(" (%d)", status.Code)
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
