// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/auditlog"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("From the previous release", Ordered, func() {
	var settled calm
	var rolling, canary workloads

	BeforeAll(func(ctx context.Context) {
		install(ctx, formerChart)
		rolling = begin(ctx, "rolling.yaml", sleeperV1)
		canary = begin(ctx, "canary.yaml", nginxAlpine)
		all := start(ctx, "settled.yaml", nginxAlpine)
		all.apply(ctx, nginxLatest)
		rolling.settled(ctx)
		canary.settled(ctx)
		settled = all.rest(ctx)
		Expect(restarts(settled.pods)).To(HaveKeyWithValue(int32(1), Not(BeZero())), "updated in place")
	})

	It("an upgrade leaves settled workloads alone, and rollouts go on", short.Spec, func(ctx context.Context) {
		before := rolling.pods(ctx)
		began := time.Now()
		former := managers(ctx)
		rolling.apply(ctx, sleeperV2)
		Eventually(ctx, func(ctx context.Context) []string { return images(rolling.pods(ctx, "set")) }).Should(ContainElement(sleeperV2))
		Eventually(ctx, func(ctx context.Context) []string { return images(rolling.pods(ctx, "deployment")) }).Should(ContainElement(sleeperV2))

		upgrade(ctx, presentChart)
		present := managers(ctx)
		Expect(present).NotTo(ContainElement(BeElementOf(former)))
		rolling.finish(ctx)

		By("looking at the rollouts")
		after := rolling.pods(ctx)
		Expect(observe.Differences(before, after, 1)).To(BeEmpty())
		Expect(images(after)).To(HaveEach(sleeperV2))
		for _, app := range []string{"set", "deployment"} {
			updaters := rolling.updaters(ctx, app, began)
			Expect(updaters).To(And(ContainElement(BeElementOf(former)), ContainElement(BeElementOf(present))),
				"%s: both releases had a part in the rollout, %v before and %v after the upgrade", app, former, present)
		}
		By("looking at the settled workloads")
		settled.expectUntouched(ctx)
	})

	It("a rollback to it does so, too", func(ctx context.Context) {
		helm(ctx, "rollback", release, "1", "--wait", "--timeout", patience.String())
		canary.expectUpdate(ctx, nginxLatest)
		settled.expectUntouched(ctx)
		canary.expectStatus(ctx, pluginOf(ctx, presentSources))
	})

	It("so does an upgrade with the values of that release", func(ctx context.Context) {
		upgrade(ctx, presentChart, "--reuse-values")
		canary.expectUpdate(ctx, nginxAlpine)
		settled.expectUntouched(ctx)
		canary.expectStatus(ctx, pluginOf(ctx, formerSources))
	})
})

// pluginOf returns the path of a release's plugin, which is compiled from its sources.
func pluginOf(ctx context.Context, sources string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubectl-insitu")
	output, err := exec.CommandContext(ctx, "go", "build", "-C", sources, "-o", path, "./cmd/kubectl-insitu").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return path
}

// expectStatus checks that a plugin shows the workloads, at rest, which the manager of another
// release updates.
func (w workloads) expectStatus(ctx context.Context, plugin string) {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, plugin, "status", "-n", w.namespace, "-o", "json").Output()
	Expect(err).NotTo(HaveOccurred())
	var told []struct{ Name, Phase string }
	Expect(json.Unmarshal(output, &told)).To(Succeed(), string(output))
	Expect(told).To(And(HaveLen(len(w.names(ctx, ours))+len(w.names(ctx, builtin))), HaveEach(HaveField("Phase", "Healthy"))))
}

// finish lets the rollouts go on to the last pod, and waits for their end.
func (w workloads) finish(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "patch", "-n", w.namespace, "statefulsets.apps.kruise.io", "set", "--type=merge", "-p", `{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}`)
	kubectl(ctx, "annotate", "-n", w.namespace, "deployments", "deployment", native.PartitionAnnotation+"-")
	w.settled(ctx)
}

// managers returns the names of the manager's pods.
func managers(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(releaseNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	Expect(names).NotTo(BeEmpty())
	return names
}

// updaters returns the manager's pods that changed the spec of a workload's pods.
func (w workloads) updaters(ctx context.Context, app string, since time.Time) []string {
	GinkgoHelper()
	var names []string
	for _, pod := range w.pods(ctx, app) {
		names = append(names, pod.Name)
	}
	events, err := auditlog.Read(auditPath, operatorUser)
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for i := range events {
		event := &events[i]
		if event.Verb == "patch" && auditlog.IsWrite(event) && auditlog.Resource(event) == "pods" && event.ObjectRef.Namespace == w.namespace &&
			slices.Contains(names, event.ObjectRef.Name) && event.RequestReceivedTimestamp.After(since) {
			found = append(found, event.User.Extra["authentication.kubernetes.io/pod-name"]...)
		}
	}
	return found
}

// expectUpdate checks that the manager updates the workloads in place, from beginning to
// end: so it has looked at all others, too.
func (w workloads) expectUpdate(ctx context.Context, image string) {
	GinkgoHelper()
	before := w.pods(ctx)
	w.apply(ctx, image)
	w.settled(ctx)
	after := w.pods(ctx)
	Expect(observe.Differences(before, after, 1)).To(BeEmpty())
	Expect(images(after)).To(HaveEach(image))
}

func images(pods []observe.Pod) []string {
	var found []string
	for _, pod := range pods {
		found = append(found, pod.Image)
	}
	return found
}

// restarts returns how many pods were restarted how often.
func restarts(pods []observe.Pod) map[int32]int {
	found := map[int32]int{}
	for _, pod := range pods {
		found[pod.Restarts]++
	}
	return found
}
