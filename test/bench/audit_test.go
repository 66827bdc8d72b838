// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const other = "system:node:sim-1"

var noon = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// entry is a line of an audit log.
func entry(user, verb, object string, second, code int, more ...string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":%q,"user":{"username":%q},`+
		`"objectRef":{%s},"requestReceivedTimestamp":%q,"responseStatus":{"code":%d}%s}`,
		verb, user, object, noon.Add(time.Duration(second)*time.Second).Format("2006-01-02T15:04:05.000000Z07:00"), code, strings.Join(more, ""))
}

// started is the first of the two entries of a watch, the only one while it runs.
func started(entry string) string {
	return strings.Replace(entry, "ResponseComplete", "ResponseStarted", 1)
}

func TestRequestsAreCountedByKindWithinAWindow(t *testing.T) {
	g := NewWithT(t)
	insitu := managerAccount.user()
	pod, status, event := `"resource":"pods","name":"a"`, `"resource":"pods","name":"a","subresource":"status"`, `"resource":"events"`
	resize := `"resource":"pods","name":"a","subresource":"resize"`
	log := strings.Join([]string{
		entry(insitu, "patch", status, 0, 200),
		entry(insitu, "patch", status, 1, 200),
		entry(other, "patch", status, 2, 200),
		entry(insitu, "patch", pod, 2, 200, `,"requestURI":"/api/v1/namespaces/default/pods/a?dryRun=All&fieldManager=insitu"`),
		entry(insitu, "patch", pod, 2, 409),
		entry(insitu, "patch", pod, 3, 200),
		entry(insitu, "patch", resize, 3, 200),
		entry(insitu, "patch", resize, 3, 403),
		entry(insitu, "create", event, 3, 201),
		entry(insitu, "watch", pod, 3, 200),
		started(entry(insitu, "watch", pod, 3, 200)),
		started(entry(insitu, "watch", pod, 4, 200)),
		entry(insitu, "patch", status, 4, 200),
		entry(insitu, "patch", status, 5, 200),
	}, "\n") + "\n"
	path := filepath.Join(t.TempDir(), "audit.log")
	g.Expect(os.WriteFile(path, []byte(log), 0o600)).To(Succeed())
	requests, err := readAudit(path, insitu)
	g.Expect(err).NotTo(HaveOccurred())

	counts := window{user: insitu, from: noon.Add(time.Second), to: noon.Add(5 * time.Second)}.count(requests)
	g.Expect(counts).To(Equal(map[string]int{
		"patch pods/status": 2, "patch pods": 1, "patch pods (409)": 1, "patch pods/resize": 1, "patch pods/resize (403)": 1, "patch pods (dry run)": 1, "create events": 1, "watch pods": 2,
	}))
	g.Expect(podWritesIn(counts)).To(Equal(4), "what was refused or only tried was not written")
	g.Expect(window{user: other, from: noon, to: noon.Add(time.Minute)}.count(requests)).To(BeEmpty())
}
