// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

// serveDashboard runs "kubectl insitu dashboard" in a namespace until the spec ends, and
// returns the address that it prints.
func serveDashboard(namespace string) string {
	GinkgoHelper()
	command := exec.Command(filepath.Join(os.Getenv("INSITU_PLUGIN"), "kubectl-insitu"), "dashboard", "--namespace", namespace)
	command.Stderr = GinkgoWriter
	output, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(command.Process.Signal(syscall.SIGINT)).To(Succeed())
		_, _ = io.Copy(io.Discard, output)
		Expect(command.Wait()).To(Succeed(), "Ctrl-C ends it well")
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	Expect(line).To(MatchRegexp(`^The dashboard is at http://127\.0\.0\.1:\d+/\w+/\n$`))
	return strings.TrimSpace(strings.TrimPrefix(line, "The dashboard is at "))
}

// browse opens a page in a headless Chromium until the spec ends.
func browse(ctx context.Context, url string) context.Context {
	GinkgoHelper()
	path := os.Getenv("CHROMIUM")
	Expect(path).NotTo(BeEmpty(), "CHROMIUM names the browser; run the suite with: make test-e2e")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(ctx), options...)
	DeferCleanup(stop)
	tab, cancel := chromedp.NewContext(allocator)
	DeferCleanup(func() {
		Expect(chromedp.Cancel(tab)).To(Succeed(), "it waits for the browser to end, with all its processes")
		cancel()
	})
	// A browser breaks off what it loads when a network of the machine comes or goes.
	Eventually(func() error { return chromedp.Run(tab, chromedp.EmulateViewport(1440, 1200), chromedp.Navigate(url)) }).Should(Succeed())
	return tab
}

// shown returns the text of what the page shows beside its list.
func shown(tab context.Context) (string, error) {
	text := ""
	err := chromedp.Run(tab, chromedp.Evaluate(`document.querySelector('main').innerText`, &text))
	return text, err
}

// picture leaves a picture of the page, light and dark.
func picture(tab context.Context, name string) {
	GinkgoHelper()
	for _, scheme := range []string{"light", "dark"} {
		var raw []byte
		Expect(chromedp.Run(
			tab,
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.CaptureScreenshot(&raw),
		)).To(Succeed())
		folder := filepath.Join("..", "..", ".out")
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(folder, "dashboard-on-lab-"+name+"-"+scheme+".png"), raw, 0o600)).To(Succeed())
	}
}

var _ = Describe("The dashboard", func() {
	It("names what four rollouts wait for on one screen, and shows a rollout as it happens", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "stuck.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		for _, rollout := range stuckRollouts() {
			output, code := plugin(ctx, namespace, "status", rollout.workload, "--watch", "--timeout=3m")
			Expect(code).To(Equal(commands.ExitOK), output)
		}
		tab := browse(ctx, serveDashboard(namespace))
		Eventually(shown).WithArguments(tab).Should(ContainSubstring("Nothing needs help"))

		for _, rollout := range stuckRollouts() {
			output, err := kubectl(ctx, "patch", "-n", namespace, rollout.workload, "--type=json", "-p", "["+rollout.patch+"]")
			Expect(err).NotTo(HaveOccurred(), output)
		}
		Eventually(shown).WithArguments(tab).Should(And(
			ContainSubstring("3 workloads need help"),
			ContainSubstring("kubectl insitu undo statefulset.apps.kruise.io/image -n "+namespace),
			ContainSubstring(inplace.ReasonInPlaceUpdateHook), ContainSubstring(inplace.ReasonResizeInfeasible),
			ContainSubstring(volumes.ReasonExpansionInfeasible),
		), "the page is not loaded again")
		picture(tab, "stuck")

		set := create(ctx, builders.StatefulSet(namespace, "rolling", nginxAlpine).Replicas(6).MaxUnavailable(2).GracePeriod(2).Partition(4))
		address := ""
		Expect(chromedp.Run(tab, chromedp.Evaluate(`location.hash = '#/apps.kruise.io/StatefulSet/`+namespace+`/rolling'`, &address))).To(Succeed())
		Eventually(shown).WithArguments(tab).Should(ContainSubstring("Healthy"))
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.UpdatedReadyReplicas).To(BeEquivalentTo(2))
		})
		// The next two stay where they are until they were seen.
		change(ctx, set, edits(partition(0), endless))
		Eventually(shown).WithArguments(tab).Should(And(ContainSubstring("Progressing"), ContainSubstring("2 of 6"), ContainSubstring("Grace")))
		picture(tab, "rolling")
		change(ctx, set, shortGrace)
		Eventually(shown).WithArguments(tab).Should(And(ContainSubstring("Healthy"), ContainSubstring("6 of 6")))
	})
})
