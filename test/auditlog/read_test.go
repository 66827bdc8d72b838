// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	operator = "system:serviceaccount:insitu-system:insitu-manager"
	kubelet  = "system:node:node-1"
)

// line is a line of an audit log.
func line(stage, user, verb, uri string, code int, more string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":%q,"verb":%q,"requestURI":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":"pods","namespace":"shop","name":"web-0","apiVersion":"v1"},"responseStatus":{"code":%d}%s}`+"\n",
		stage, verb, uri, user, code, more)
}

func patched(user string, code int) string {
	return line("ResponseComplete", user, "patch", "/api/v1/namespaces/shop/pods/web-0", code, "")
}

func described(events []auditv1.Event) []string {
	var found []string
	for i := range events {
		found = append(found, Describe(&events[i]))
	}
	return found
}

func TestRequestsOfUsersAreRead(t *testing.T) {
	g := NewWithT(t)
	log := patched(operator, 200) + patched(kubelet, 200) +
		line("ResponseStarted", operator, "watch", "/api/v1/pods", 200, "") +
		line("ResponseComplete", operator, "watch", "/api/v1/pods", 200, "") +
		line("RequestReceived", operator, "patch", "/api/v1/pods", 0, "") +
		line("ResponseComplete", "admin", "get", "/api/v1/pods", 200, `,"impersonatedUser":{"username":"`+operator+`"}`) +
		line("ResponseComplete", "admin", "update", "/api/v1/pods?fieldManager="+operator, 200, "") +
		strings.TrimSuffix(patched(operator, 200), "}\n")

	events, err := Parse(strings.NewReader(log), operator)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(described(events)).To(Equal([]string{
		"patch pods shop/web-0 by " + operator, "watch pods shop/web-0 by " + operator, "get pods shop/web-0 by " + operator,
	}), "the last line is being written")

	events, err = Parse(strings.NewReader(log))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(events).To(HaveLen(5))
}

func TestALogIsReadFromItsFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	g.Expect(os.WriteFile(path, []byte(patched(operator, 200)+patched(kubelet, 200)), 0o600)).To(Succeed())
	events, err := Read(path, kubelet)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(described(events)).To(Equal([]string{"patch pods shop/web-0 by " + kubelet}))
}

func TestALogThatCannotBeReadIsAnError(t *testing.T) {
	g := NewWithT(t)
	_, err := Parse(strings.NewReader(`{"user":{"username":"` + operator + `"` + "\n"))
	g.Expect(err).To(MatchError(ContainSubstring("read audit log")))
	_, err = Read(filepath.Join(t.TempDir(), "none.log"))
	g.Expect(err).To(MatchError(ContainSubstring("open audit log")))
}

func TestWrites(t *testing.T) {
	for text, test := range map[string]struct {
		verb, uri string
		code      int32
		want      bool
	}{
		"a patch":          {"patch", "/api/v1/pods", 200, true},
		"a creation":       {"create", "/api/v1/pods", 201, true},
		"many deletions":   {"deletecollection", "/api/v1/pods", 200, true},
		"a conflict":       {"patch", "/api/v1/pods", 409, false},
		"a dry run":        {"patch", "/api/v1/pods?dryRun=All", 200, false},
		"a read":           {"get", "/api/v1/pods", 200, false},
		"a watch":          {"watch", "/api/v1/pods", 200, false},
		"a failed request": {"update", "/api/v1/pods", 500, false},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			event := &auditv1.Event{Verb: test.verb, RequestURI: test.uri, ResponseStatus: &metav1.Status{Code: test.code}}
			g.Expect(IsWrite(event)).To(Equal(test.want))
		})
	}
}
