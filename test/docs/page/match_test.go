// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestMatch(t *testing.T) {
	for name, test := range map[string]struct {
		expected, actual string
		want             bool
	}{
		"the same":            {"deployment.apps/web created\n", "deployment.apps/web created\n", true},
		"another word":        {"deployment.apps/web created\n", "deployment.apps/web configured\n", false},
		"a line is missing":   {"a\nb\n", "a\n", false},
		"a line too many":     {"a\n", "a\nb\n", false},
		"nothing is expected": {"", "a\n", false},
		"nothing is printed":  {"", "\n", true},
		"width and blanks":    {"NAME   AGE\nweb    1s\n", "NAME AGE\n\nweb  12m\n", true},
		"a pod of a Deployment": {
			"web-6bd469df5c-dcsft 1/1 Running 1 (3s ago) 34s", "web-db4d884d6-ggtr6 1/1 Running 1 (12s ago) 2m30s", true},
		"a pod that restarted more often": {
			"web-6bd469df5c-dcsft 1/1 Running 1 (3s ago) 34s", "web-6bd469df5c-dcsft 1/1 Running 2 (3s ago) 34s", false},
		"a pod of which it is not said when it restarted": {"db-1 1/1 Running 1 (3s ago) 34s", "db-1 1/1 Running 1 25s", true},
		"a pod of another workload":                       {"web-6bd469df5c-dcsft 1/1", "api-6bd469df5c-dcsft 1/1", false},
		"another ordinal":                                 {"db-0 1/1", "db-1 1/1", false},
		"a hash without a digit":                          {`"revision":"db4d884d6"`, `"revision":"bcdfghjklm"`, true},
		"UID, IP and node": {
			"3d0c0c60-9cc3-4376-a3cb-c7090a4ed855 198.18.18.5 node-2", "94da7944-6a2b-44da-963b-646db2d9488a 198.18.17.14 node-1", true},
		"an IP for a UID":   {"3d0c0c60-9cc3-4376-a3cb-c7090a4ed855", "198.18.17.14", false},
		"a digest":          {"nginx@sha256:" + digest("a"), "nginx@sha256:" + digest("0"), true},
		"times":             {`"time":"2026-11-21T23:18:40Z"`, `"time":"2027-01-02T03:04:05Z"`, true},
		"ages":              {"1s 2m 2m30s 3h 5d12h 1.5s", "59s 10m 9m3s 3h2m 5d 12s", true},
		"an event again":    {"1s Warning", "2s (x3 over 12s) Warning", true},
		"no ages":           {"cpu: 100m, memory: 64Mi", "cpu: 150m, memory: 64Mi", false},
		"sizes":             {"memory: 64Mi", "memory: 96Mi", false},
		"a number":          {"3 of 3 pods", "2 of 3 pods", false},
		"part of a line":    {"pod db-2: ImagePullBackOff: … nginx:missing…", `pod db-2: ImagePullBackOff: container main: "nginx:missing" 404`, true},
		"not that part":     {"pod db-2: ImagePullBackOff: …", "pod db-2: ErrImagePull: container main", false},
		"some lines":        {"first\n...\nlast\n", "first\nsecond\nthird\nlast\n", true},
		"no lines":          {"first\n…\nlast\n", "first\nlast\n", true},
		"not the last line": {"first\n...\nlast\n", "first\nsecond\n", false},
		"lines at the end":  {"first\n...\n", "first\nsecond\nthird\n", true},
		"no regexp":         {"a.c (x) …", "abc (x) 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Match(test.expected, test.actual)).To(Equal(test.want))
		})
	}
}

func digest(of string) string {
	all := ""
	for range 64 {
		all += of
	}
	return all
}
