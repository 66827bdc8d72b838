// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/auditlog"
	"github.com/insitu-dev/insitu/test/builders"
)

// operatorUser is the account of the operator, as the chart names it.
const operatorUser = "system:serviceaccount:insitu-system:insitu-manager"

// operatorWrites returns the operator's writes in a namespace, events, dry runs
// and conflicts left out, each as "verb resource/subresource name".
func operatorWrites(namespace string) []string {
	GinkgoHelper()
	return operatorRequests(namespace, false)
}

// operatorRequests returns the operator's writes, or what it only tried.
func operatorRequests(namespace string, dryRun bool) []string {
	GinkgoHelper()
	events, err := auditlog.Read(auditLog(), operatorUser)
	Expect(err).NotTo(HaveOccurred())
	var writes []string
	for i := range events {
		event := &events[i]
		// The manager of a spec, which is a process of this machine, has proxies that see its writes.
		if event.User.Username != operatorUser || event.ObjectRef == nil || event.ObjectRef.Namespace != namespace ||
			event.ObjectRef.Resource == "events" || auditlog.IsDryRun(event) != dryRun || auditlog.Code(event) == http.StatusConflict {
			continue
		}
		switch event.Verb {
		case "create", "update", "patch", "delete":
			ref := event.ObjectRef
			writes = append(writes, strings.TrimSpace(event.Verb+" "+ref.Resource+"/"+ref.Subresource+" "+ref.Name))
		}
	}
	return writes
}

// writesAtRest waits until the operator has had nothing to write for a while, and returns
// how many writes there are: a kubelet may be late with what it reports.
func writesAtRest(ctx context.Context, namespace string) int {
	GinkgoHelper()
	const quiet = 5 * time.Second
	count, since := -1, time.Now()
	Eventually(ctx, func() time.Duration {
		if now := len(operatorWrites(namespace)); now != count {
			count, since = now, time.Now()
		}
		return time.Since(since)
	}).WithPolling(time.Second).Should(BeNumerically(">=", quiet))
	return count
}

// auditLog is the audit log of the lab's API server.
func auditLog() string { return filepath.Join(labPath, "logs", "audit.log") }

// podWrites returns the writes to one pod.
func podWrites(writes []string, name string) []string {
	var found []string
	for _, w := range writes {
		if strings.HasSuffix(w, " "+name) && strings.Contains(w, " pods/") {
			found = append(found, strings.TrimSuffix(w, " "+name))
		}
	}
	return found
}

var _ = Describe("The operator's writes, by the API server's audit log", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("are three per pod with the readiness gate", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).MaxUnavailable(2))
		before := len(operatorWrites(namespace))
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		writes := operatorWrites(namespace)[before:]
		for _, p := range pods(ctx, set) {
			Expect(podWrites(writes, p.Name)).To(Equal([]string{"patch pods/status", "patch pods/", "patch pods/status"}), p.Name)
		}
		Expect(operatorRequests(namespace, true)).To(Equal([]string{"patch pods/ sample-2"}), "tried once, before the first is drained")
	})

	It("are three per pod without it, too, and one for labels", func(ctx context.Context) {
		set := createUngated(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := len(operatorWrites(namespace))
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Labels["tier"] = "backend" })
		waitSettled(ctx, set)
		writes := operatorWrites(namespace)[before:]
		for _, p := range pods(ctx, set) {
			Expect(podWrites(writes, p.Name)).To(Equal([]string{"patch pods/status", "patch pods/", "patch pods/status", "patch pods/"}), p.Name)
		}
	})

	// A pod's label makes a watch event and so a reconciliation.
	It("are none for a settled set, also after a restart of the operator", Serial, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		before := writesAtRest(ctx, namespace)

		nudge(ctx, set, "first")
		nudge(ctx, set, "second")
		killOperator(ctx)
		nudge(ctx, set, "third")
		Expect(operatorWrites(namespace)[before:]).To(BeEmpty())
	})
})

// nudge changes a label of a pod that no controller reads, so that the set is
// reconciled, and gives the operator the time to do so.
func nudge(ctx context.Context, set *appsv1beta1.StatefulSet, value string) {
	GinkgoHelper()
	pod := getPod(ctx, set, 0)
	before := pod.DeepCopy()
	pod.Labels["nudge"] = value
	Expect(api.Patch(ctx, pod, mergeFrom(before))).To(Succeed())
	Consistently(ctx, func(ctx context.Context) string { return getPod(ctx, set, 0).Labels["nudge"] }).
		WithTimeout(3 * time.Second).Should(Equal(value))
}
