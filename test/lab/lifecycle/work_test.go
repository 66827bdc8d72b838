// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// podTimeout is how long pods may take to become what a test waits for.
const podTimeout = 3 * time.Minute

func TestLabWorks(t *testing.T) {
	skipIfShort(t)
	lab := newLab(t)
	lab.succeed("up", "--simulated-nodes", "2")
	lab.runPods()
	t.Run("pods are on both nodes", func(t *testing.T) {
		NewWithT(t).Expect(lab.pods(".spec.nodeName")).To(ConsistOf("node-1", "node-2"))
	})
	t.Run("a pod reaches another by headless name", func(t *testing.T) {
		for _, from := range []string{"sample-0", "sample-1"} {
			for _, to := range []string{"sample-0", "sample-1"} {
				page := lab.get(t, from, "http://"+to+".fake-service.default.svc.cluster.local")
				NewWithT(t).Expect(page).To(ContainSubstring("nginx:alpine"))
			}
		}
	})
	t.Run("a pod reaches a Service, and itself through it", func(t *testing.T) {
		for range 10 { // Both endpoints are chosen, but for 1 in 1000 times.
			NewWithT(t).Expect(lab.get(t, "sample-0", "http://web")).To(ContainSubstring("nginx:alpine"))
		}
	})
	t.Run("a pod reaches the API server by its Service", func(t *testing.T) {
		// It answers in words to those who do not speak TLS.
		output, _ := lab.run("kubectl", "exec", "sample-0", "--", "busybox", "timeout", "10", "busybox", "wget", "-O-", "http://kubernetes.default:443")
		NewWithT(t).Expect(output).To(ContainSubstring("400 Bad Request"))
	})
	t.Run("what it is observed by works", lab.testObservation)
	t.Run("a second up does nothing", func(t *testing.T) {
		NewWithT(t).Expect(lab.succeed("up")).To(ContainSubstring("nothing to do"))
	})
	t.Run("another size is refused", func(t *testing.T) {
		output, err := lab.run("up", "--nodes", "3")
		NewWithT(t).Expect(err).To(HaveOccurred())
		NewWithT(t).Expect(output).To(ContainSubstring("not 3 nodes"))
	})
	t.Run("a component that dies comes back", lab.testComponentComesBack)
	t.Run("a node dies and comes back", lab.testNodeComesBack)
	t.Run("up brings a lab back whose processes died", lab.testLabComesBack)
	t.Run("another lab beside it", lab.testSecondLab)
}

func (l *testLab) testObservation(t *testing.T) {
	t.Run("logs are served", func(t *testing.T) {
		log, err := l.kubectl("logs", "sample-0")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(log).To(ContainSubstring("GET / HTTP"))
	})
	t.Run("writes to pods are in the audit log", func(t *testing.T) {
		log, err := os.ReadFile(l.dir + "/logs/audit.log")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(log)).To(MatchRegexp(`"level":"Request".*"verb":"patch".*"resource":"pods".*"subresource":"status"`))
		NewWithT(t).Expect(string(log)).NotTo(ContainSubstring(`"RequestReceived"`))
	})
	t.Run("what pods use is measured", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() (string, error) { return l.kubectl("top", "pods", "--no-headers") }, podTimeout, time.Second).
			Should(MatchRegexp(`(?m)^sample-0 +\d+m +[1-9]\d*Mi\s+sample-1 +\d+m +[1-9]\d*Mi\s*$`))
		g.Expect(l.kubectl("top", "nodes", "--no-headers")).To(MatchRegexp(`(?m)^node-1 .*\s+node-2 .*$`))
	})
	t.Run("simulated nodes are tainted", func(t *testing.T) {
		taints, err := l.kubectl("get", "nodes", "-l", "insitu.dev/simulated=true", "-o", "jsonpath={.items[*].spec.taints}")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(taints).To(Equal(`[{"effect":"NoSchedule","key":"insitu.dev/simulated","value":"true"}] ` +
			`[{"effect":"NoSchedule","key":"insitu.dev/simulated","value":"true"}]`))
	})
}

// get returns the page that the pod sees. The name of a pod that has just become ready is
// known a moment later: its EndpointSlice is written then, and CoreDNS sees it then.
func (l *testLab) get(t *testing.T, pod, url string) string {
	t.Helper()
	var page string
	NewWithT(t).Eventually(func() (err error) {
		page, err = l.kubectl("exec", pod, "--", "busybox", "timeout", "10", "busybox", "wget", "-qO-", url)
		return err
	}, podTimeout, time.Second).Should(Succeed(), "%s from %s", url, pod)
	return page
}

func (l *testLab) testComponentComesBack(t *testing.T) {
	g := NewWithT(t)
	l.killProcess("kube-controller-manager --kubeconfig=" + l.dir + "/")
	g.Eventually(func() string { return l.succeed("status") }, podTimeout, time.Second).
		Should(MatchRegexp(`kube-controller-manager +Ready +1 .*signal: killed`))
}

func (l *testLab) testNodeComesBack(t *testing.T) {
	g := NewWithT(t)
	ready := func() (string, error) {
		return l.kubectl("get", "node", "node-2", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	}
	uids := l.pods(".metadata.uid")
	l.succeed("node", "kill", "node-2")
	for _, commandLine := range processes(g) {
		g.Expect(commandLine).NotTo(ContainSubstring(l.dir + "/state/nodes/node-2"))
	}
	g.Eventually(ready, podTimeout, time.Second).Should(Equal("Unknown"))
	l.succeed("node", "start", "node-2")
	g.Expect(ready()).To(Equal("True"))
	g.Eventually(func() []string { return l.pods(".status.containerStatuses[0].restartCount") }, podTimeout, time.Second).
		Should(ConsistOf("0", "1"))
	l.expectPodsReady(g, uids)
}

func (l *testLab) testLabComesBack(t *testing.T) {
	g := NewWithT(t)
	uids := l.pods(".metadata.uid")
	l.killSupervisor()
	output, err := l.run("status")
	g.Expect(err).To(HaveOccurred())
	g.Expect(output).To(ContainSubstring("processes are gone"))

	g.Expect(l.succeed("up")).To(ContainSubstring("starting them again with its data"))
	g.Eventually(func() []string { return l.pods(".status.containerStatuses[0].restartCount") }, podTimeout, time.Second).
		Should(ConsistOf("1", "2"))
	l.expectPodsReady(g, uids)
}

// expectPodsReady waits until the pods with these UIDs are ready.
func (l *testLab) expectPodsReady(g Gomega, uids []string) {
	g.Eventually(func() []string { return l.pods(`.status.conditions[?(@.type=="Ready")].status`) }, podTimeout, time.Second).
		Should(ConsistOf("True", "True"))
	g.Expect(l.pods(".metadata.uid")).To(Equal(uids))
}

func (l *testLab) testSecondLab(t *testing.T) {
	g := NewWithT(t)
	before := lookAround(g)
	second := newLab(t)
	second.succeed("up")
	second.runPods()
	g.Expect(second.get(t, "sample-0", "http://sample-1.fake-service")).To(ContainSubstring("nginx:alpine"))
	g.Expect(l.get(t, "sample-0", "http://sample-1.fake-service")).To(ContainSubstring("nginx:alpine"))
	g.Expect(second.pods(".metadata.uid")).NotTo(ContainElements(l.pods(".metadata.uid")))

	second.succeed("down")
	expectNoTrace(g, before)
	g.Expect(l.get(t, "sample-1", "http://sample-0.fake-service")).To(ContainSubstring("nginx:alpine"))
}
