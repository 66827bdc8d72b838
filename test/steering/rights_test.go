// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package steering_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// documented returns the Role that docs/steering.md says is enough.
func (w *world) documented() *rbacv1.Role {
	w.t.Helper()
	page, err := os.ReadFile("../../docs/steering.md")
	w.Expect(err).NotTo(HaveOccurred())
	_, block, found := strings.Cut(string(page), "```yaml\napiVersion: rbac.authorization.k8s.io/v1\n")
	w.Expect(found).To(BeTrue())
	block, _, _ = strings.Cut(block, "```")
	role := &rbacv1.Role{}
	w.Expect(yaml.UnmarshalStrict([]byte(block), role)).To(Succeed())
	return role
}

// allow gives a user the rules, and has them run the commands.
func (w *world) allow(user string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: user}
	w.Expect(w.c.Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules})).To(Succeed())
	w.Expect(w.c.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	w.as = user
	w.Eventually(func() int { _, _, code := w.run("history", "deploy/web"); return code }).Should(BeZero())
}

var everything = [][]string{
	{"pause", "WORKLOAD"}, {"resume", "WORKLOAD"}, {"promote", "WORKLOAD"}, {"restart", "WORKLOAD"}, {"history", "WORKLOAD"},
	{"set", "image", "WORKLOAD", "main=nginx:2"}, {"set", "resources", "WORKLOAD", "--limits=cpu=1"},
	{"undo", "WORKLOAD", "--dry-run=server"}, {"undo", "WORKLOAD", "--to-revision=1"},
}

// The documented rights are enough for every command and kind.
func TestDocumentedRights(t *testing.T) {
	w := newWorld(t)
	deployment := w.deployment(optedIn)
	w.replicaSet(deployment, "aaa", "1")
	w.record(w.statefulSet(), "ours", 1, "")
	w.record(w.cloneSet(), "clone", 1, "")
	w.record(w.ourDaemonSet(), "agents", 1, "")
	w.record(w.daemonSet(optedIn), "daemon", 1, "")
	w.record(w.nativeStatefulSet(optedIn), "native", 1, "")
	w.allow("operations", w.documented().Rules)
	for _, name := range []string{"deploy/web", "statefulset.apps.kruise.io/web", "cloneset/web", "ads/web", "daemonset.apps/web", "statefulset.apps/web"} {
		for _, command := range everything {
			args := strings.Fields(strings.ReplaceAll(strings.Join(command, " "), "WORKLOAD", name))
			_, stderr, code := w.run(args...)
			w.Expect(code).To(BeZero(), "%v: %s", args, stderr)
		}
	}
}

// Whoever may not patch changes nothing, and is told so.
func TestReadersChangeNothing(t *testing.T) {
	w := newWorld(t)
	deployment := w.deployment(optedIn)
	w.replicaSet(deployment, "aaa", "1")
	rules := w.documented().Rules
	for i := range rules {
		rules[i].Verbs = []string{"get", "list"}
	}
	w.allow("reader", rules)
	before := w.read(deployment)
	for _, command := range everything[3:7] {
		args := strings.Fields(strings.ReplaceAll(strings.Join(command, " "), "WORKLOAD", "deploy/web"))
		_, stderr, code := w.run(args...)
		if command[0] == "history" {
			w.Expect(code).To(BeZero())
			continue
		}
		w.Expect(code).To(Equal(1))
		w.Expect(stderr).To(And(HavePrefix("error: change deployment.apps/web: "), ContainSubstring(`User "reader" cannot patch resource "deployments"`)))
	}
	w.Expect(w.read(deployment).GetResourceVersion()).To(Equal(before.GetResourceVersion()))
}

func TestWithoutTheRightToSeePods(t *testing.T) {
	w := newWorld(t)
	deployment := w.deployment(optedIn)
	w.replicaSet(deployment, "aaa", "1")
	w.setImage("deploy/web", "nginx:2")
	rules := w.documented().Rules
	w.Expect(rules[3].Resources).To(Equal([]string{"pods"}))
	w.allow("blind", rules[:3])

	stdout, _, code := w.run("history", "deploy/web")
	w.Expect(code).To(BeZero())
	w.Expect(stdout).To(And(ContainSubstring(" ? "), ContainSubstring("note: pods are not counted: ")))
	_, stderr, code := w.run("undo", "deploy/web")
	w.Expect(code).To(Equal(1))
	w.Expect(stderr).To(ContainSubstring("which revision the pods have cannot be seen, so name one with --to-revision: "))
	_, stderr, code = w.run("undo", "deploy/web", "--to-revision=1")
	w.Expect(code).To(BeZero(), stderr)
}
