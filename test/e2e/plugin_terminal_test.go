// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// terminal is a terminal in which a command runs: tmux, in a server of its own.
type terminal struct {
	socket string
}

// openTerminal opens a terminal of a size, and runs a line of shell in it. It stays open
// when that has ended.
func openTerminal(ctx context.Context, width, height int, line string) terminal {
	GinkgoHelper()
	if _, err := exec.LookPath("tmux"); err != nil {
		output, err := exec.CommandContext(ctx, "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", "install", "--yes", "--no-install-recommends", "tmux").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "install tmux: %s", output)
	}
	t := terminal{socket: fmt.Sprintf("insitu-%d", time.Now().UnixNano())}
	t.run(ctx, "-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), line+"; sleep 600")
	DeferCleanup(func(ctx context.Context) { t.run(ctx, "kill-server") })
	return t
}

func (t terminal) run(ctx context.Context, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "tmux", append([]string{"-L", t.socket}, args...)...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "tmux %s: %s", strings.Join(args, " "), output)
	return string(output)
}

// screen returns what a person sees.
func (t terminal) screen(ctx context.Context) string {
	GinkgoHelper()
	return t.run(ctx, "capture-pane", "-p")
}

func (t terminal) resize(ctx context.Context, width, height int) {
	GinkgoHelper()
	t.run(ctx, "resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

var _ = Describe("The kubectl plugin in a terminal", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("draws a rollout in place, also when the window changes", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(true)}))
		setImage(ctx, set, sleeperV2)
		window := openTerminal(ctx, 110, 40, fmt.Sprintf("echo before; %s/kubectl-insitu status -n %s statefulset.apps.kruise.io/sample --watch; echo exit code $?",
			os.Getenv("INSITU_PLUGIN"), namespace))
		// see waits until the screen is one view with these lines, and begins as said.
		see := func(top string, lines ...string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				screen := window.screen(ctx)
				g.Expect(screen).To(HavePrefix(top))
				g.Expect(strings.Count(screen, "Name: ")).To(Equal(1), "nothing is left of the views before")
				for _, line := range lines {
					g.Expect(screen).To(MatchRegexp(`(?m)^`+line), "%q", screen)
				}
			}).Should(Succeed())
			GinkgoWriter.Println(window.screen(ctx))
		}

		see("before\nName: ", `Phase: +Progressing`, `.* sample-1 +HookHeld +InPlaceUpdateHook +\S+ .*node-\d$`, `.*image sleeper:v1 -> sleeper:v2`)
		release(ctx, set, 1)
		waitState(ctx, set, 1, appsv1beta1.LifecycleStateUpdated)
		see("before\nName: ", `.* sample-1 +\S+ +UpdatedHook`)
		// A terminal that breaks lines moves what is above them out of sight.
		window.resize(ctx, 70, 40)
		see("Name: ", `.*└─ main: image sleeper:v1 -> sleeper:v2$`, `NAME +STATE .*READY`)
		holdAgain(ctx, set, 1)
		see("Name: ", `.* sample-0 +HookHeld +InPlaceUpdateHook`, `.* sample-1 +Settled`)
		window.resize(ctx, 110, 40)
		release(ctx, set, 0)
		waitState(ctx, set, 0, appsv1beta1.LifecycleStateUpdated)
		holdAgain(ctx, set, 0)
		see("", `Phase: +Healthy`, `Updates: +2 in place, 0 as new pods`, `.* sample-0 .* 1 \(1 new\)`, `exit code 0$`)
		Expect(window.run(ctx, "display-message", "-p", "#{cursor_flag} #{alternate_on}")).To(Equal("1 0\n"), "the cursor is back, on the screen that was there")
	})

	It("leaves the last view behind when it is interrupted", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(true)}))
		setImage(ctx, set, sleeperV2)
		window := openTerminal(ctx, 110, 40, fmt.Sprintf("trap : INT; %s/kubectl-insitu status -n %s statefulset.apps.kruise.io/sample --watch; echo exit code $?",
			os.Getenv("INSITU_PLUGIN"), namespace))
		Eventually(ctx, window.screen).Should(ContainSubstring("HookHeld"))
		window.run(ctx, "send-keys", "C-c")
		Eventually(ctx, window.screen).Should(And(
			ContainSubstring("HookHeld"), ContainSubstring("\nexit code 130\n"), Not(ContainSubstring("^C")), Not(ContainSubstring("error")),
		))
		Expect(window.run(ctx, "display-message", "-p", "#{cursor_flag}")).To(Equal("1\n"))
	})
})
