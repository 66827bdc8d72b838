// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package auditlog reads what was asked of an API server from its audit log.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Read returns the requests in an audit log, the oldest first; with users, only theirs.
// It is one file: see to it that the API server does not begin another when it has
// become large.
func Read(path string, users ...string) ([]auditv1.Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	defer file.Close()
	return Parse(file, users...)
}

// Parse returns the requests in an audit log, as Read does. A line without an end is
// one that is being written, and left out.
func Parse(log io.Reader, users ...string) ([]auditv1.Event, error) {
	var events []auditv1.Event
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if !mentionsAny(line, users) {
			continue
		}
		event := auditv1.Event{}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if isRequest(&event) && (len(users) == 0 || slices.Contains(users, event.User.Username) || slices.Contains(users, User(&event))) {
			events = append(events, event)
		}
	}
}

// mentionsAny saves decoding the lines of others, which are most of them.
func mentionsAny(line []byte, users []string) bool {
	if len(users) == 0 {
		return true
	}
	for _, user := range users {
		if bytes.Contains(line, []byte(`"`+user+`"`)) {
			return true
		}
	}
	return false
}

// isRequest reports whether an entry stands for a request. A watch has two, at its
// start and at its end; all others have one.
func isRequest(event *auditv1.Event) bool {
	if event.Verb == "watch" {
		return event.Stage == auditv1.StageResponseStarted
	}
	return event.Stage == auditv1.StageResponseComplete
}

// User returns the account whose permissions a request had: the one who asked, or the
// one who was impersonated.
func User(event *auditv1.Event) string {
	if event.ImpersonatedUser != nil {
		return event.ImpersonatedUser.Username
	}
	return event.User.Username
}

// Resource returns the resource of a request, such as "pods/status"; of none, "".
func Resource(event *auditv1.Event) string {
	if event.ObjectRef == nil {
		return ""
	}
	return join(event.ObjectRef.Resource, event.ObjectRef.Subresource)
}

func join(resource, subresource string) string {
	if subresource == "" {
		return resource
	}
	return resource + "/" + subresource
}

// Code returns the HTTP status that a request was answered with, 0 if there is none.
func Code(event *auditv1.Event) int {
	if event.ResponseStatus == nil {
		return 0
	}
	return int(event.ResponseStatus.Code)
}

// IsDryRun reports whether a request only tried something.
func IsDryRun(event *auditv1.Event) bool {
	return strings.Contains(event.RequestURI, "dryRun=All")
}

// IsWrite reports whether a request changed something. A dry run, and one that was
// refused, did not.
func IsWrite(event *auditv1.Event) bool {
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !IsDryRun(event) && Code(event) < http.StatusBadRequest
	default:
		return false
	}
}

// Describe tells of a request who asked for what: "patch pods/status shop/web-0 by
// system:node:node-1".
func Describe(event *auditv1.Event) string {
	name := ""
	if ref := event.ObjectRef; ref != nil {
		name = " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
	}
	return event.Verb + " " + Resource(event) + name + " by " + User(event)
}
