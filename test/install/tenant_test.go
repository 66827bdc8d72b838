// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/insitu-dev/insitu/test/auditlog"
	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/test/observe"
)

// tenant administers a namespace, and has no right anywhere else.
const tenant = "jane"

// managerOfTenant is how a tenant installs the chart.
var managerOfTenant = []string{"--set=rbac.scope=Namespace", "--set=metrics.secure=false", "--wait", "--timeout", patience.String()}

var _ = Describe("A manager of a tenant", Ordered, func() {
	var w workloads

	// asTenant runs Helm on the tenant's namespace with the tenant's rights.
	asTenant := func(ctx context.Context, args ...string) (string, error) {
		return labtools.Helm(ctx, append([]string{"--kube-as-user", tenant, "--kube-as-group", "system:authenticated", "--namespace", w.namespace}, args...)...)
	}

	BeforeAll(func(ctx context.Context) {
		install(ctx, presentChart, "--set=manager.enabled=false", `--set=holdPolicies.namespaceSelector.matchLabels.insitu\.dev/manager=tenant`)
		DeferCleanup(uninstall)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-", Labels: map[string]string{"insitu.dev/manager": "tenant"}}}
		Expect(api.Create(ctx, namespace)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, namespace)).To(Succeed()) })
		w = workloads{file: "settled.yaml", namespace: namespace.Name}
		kubectl(ctx, "create", "rolebinding", "admin", "-n", w.namespace, "--clusterrole=admin", "--user="+tenant)
	})

	It("is refused, as long as the tenant may not grant its rights", func(ctx context.Context) {
		output, err := asTenant(ctx, append([]string{"install", release, presentChart}, managerOfTenant...)...)
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("attempting to grant RBAC permissions not currently held"), ContainSubstring("pods/status")))
		output, err = asTenant(ctx, "uninstall", release, "--no-hooks")
		Expect(err).NotTo(HaveOccurred(), output)
	})

	It("is installed, once an administrator has let the tenant in", func(ctx context.Context) {
		kubectl(ctx, "create", "rolebinding", "insitu-tenant", "-n", w.namespace, "--clusterrole=insitu-tenant", "--user="+tenant)
		output, err := asTenant(ctx, append([]string{"install", release, presentChart}, managerOfTenant...)...)
		Expect(err).NotTo(HaveOccurred(), output)
	})

	It("updates pods in place, and asks for nothing that it may not do", func(ctx context.Context) {
		w.apply(ctx, nginxAlpine)
		w.settled(ctx)
		before := map[string][]observe.Pod{}
		for _, app := range []string{"set", "with-claims", "clones", "deployment", "builtin-set", "daemons"} {
			before[app] = w.pods(ctx, app)
			Expect(before[app]).To(HaveLen(2), app)
		}

		w.apply(ctx, nginxLatest)
		w.settled(ctx)

		for app, before := range before {
			after := w.pods(ctx, app)
			Expect(observe.Differences(before, after, 1)).To(BeEmpty(), app)
			Expect(images(after)).To(HaveEach(nginxLatest), app)
		}
		manager := "system:serviceaccount:" + w.namespace + ":insitu-manager"
		events, err := auditlog.Read(auditPath, manager)
		Expect(err).NotTo(HaveOccurred())
		Expect(events).NotTo(BeEmpty())
		for i := range events {
			event := &events[i]
			Expect(event.ResponseStatus.Code).NotTo(BeEquivalentTo(http.StatusForbidden), auditlog.Describe(event))
			if event.ObjectRef != nil && auditlog.IsWrite(event) {
				Expect(event.ObjectRef.Namespace).To(Equal(w.namespace), auditlog.Describe(event))
			}
		}
	})

	It("passes helm test, which tries a hold", func(ctx context.Context) {
		DeferCleanup(deleteCheck, w.namespace)
		output, err := asTenant(ctx, "test", release, "--timeout", patience.String())
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(And(
			ContainSubstring("ok    hold policies: a change of Deployment "+w.namespace+"/deployment would be held (dry run)"),
			ContainSubstring("ok    hold policies: a change of StatefulSet "+w.namespace+"/builtin-set would be held (dry run)"),
			ContainSubstring("ok    hold policies: a change of DaemonSet "+w.namespace+"/daemons would be held (dry run)"),
			Not(ContainSubstring("FAIL")),
		))
	})

	It("is uninstalled by the tenant, and leaves the pods", func(ctx context.Context) {
		before := w.pods(ctx, "set")
		output, err := asTenant(ctx, "uninstall", release, "--wait", "--timeout", patience.String())
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(observe.Differences(before, w.pods(ctx, "set"), 0)).To(BeEmpty())
	})
})
