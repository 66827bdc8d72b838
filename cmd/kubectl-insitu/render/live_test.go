// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const prompt = "$ kubectl insitu status statefulset/db --watch\n"

// drawn is what a view of this width is to show.
func drawn(t *testing.T, w report.Workload, width int, now time.Time) string {
	t.Helper()
	out := &bytes.Buffer{}
	NewWithT(t).Expect(Tree(out, w, Options{Width: width - 1, Now: now})).To(Succeed())
	return out.String()
}

// following is a view in a terminal that a test looks at.
type following struct {
	*screen
	clock   *clocktesting.FakeClock
	reports chan report.Workload
	stop    context.CancelFunc
	ended   chan error
}

func follow(t *testing.T, s *screen) *following {
	t.Helper()
	fmt.Fprint(s, "$ kubectl insitu status statefulset/db --watch\r\n")
	ctx, stop := context.WithCancel(t.Context())
	f := &following{screen: s, clock: clocktesting.NewFakeClock(now), reports: make(chan report.Workload), stop: stop, ended: make(chan error, 1)}
	go func() { f.ended <- Live(ctx, s, f.reports, Options{Color: true}, f.clock) }()
	return f
}

func TestLive(t *testing.T) {
	for name, reflows := range map[string]bool{"reflowing": true, "cutting": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := follow(t, newScreen(100, 50, reflows))

			for _, w := range []report.Workload{rolling(), badImage(), set(3)} {
				f.reports <- w
				g.Eventually(f.seen).Should(Equal(prompt + drawn(t, w, 100, now)))
			}
			g.Expect(f.showsCursor()).To(BeFalse())

			f.reports <- badImage()
			g.Eventually(f.seen).Should(Equal(prompt + drawn(t, badImage(), 100, now)))
			for _, size := range [][2]int{{60, 50}, {44, 60}, {100, 40}} {
				f.resize(size[0], size[1])
				f.clock.Step(lookPeriod)
				g.Eventually(f.seen).Should(HaveSuffix(drawn(t, badImage(), size[0], f.clock.Now())))
				g.Expect(count(bytes.Count([]byte(f.seen()), []byte("Phase:")), "view")).To(Equal("1 view"), "of the views before nothing is left")
				if reflows {
					g.Expect(f.seen()).To(HavePrefix(prompt[:40]), "what was there before the view stays")
				}
			}

			f.clock.Step(time.Minute)
			g.Eventually(f.seen).Should(HaveSuffix(drawn(t, badImage(), 100, f.clock.Now())), "ages grow")

			f.stop()
			g.Eventually(f.ended).Should(Receive(BeNil()))
			g.Expect(f.seen()).To(HaveSuffix(drawn(t, badImage(), 100, f.clock.Now())))
			g.Expect(f.showsCursor()).To(BeTrue())
			fmt.Fprint(f, "$ ")
			g.Expect(f.seen()).To(HaveSuffix("\n$\n"), "the prompt comes in a line of its own")
		})
	}
}

// In a low window the view stays within it, and what the workload waits for is seen.
func TestLiveInALowWindow(t *testing.T) {
	for name, test := range map[string]struct {
		height int
		want   []string
	}{
		"pods are summed up":                   {24, []string{"Phase:", "└─ 2 pods", "db-2", "pod db-2  Stuck  ImagePullBackOff"}},
		"the tree ends":                        {19, []string{"Phase:", "more, without --watch all are shown", "pod db-2  Stuck  ImagePullBackOff"}},
		"there is room for the beginning only": {5, []string{"Name:", "Phase:"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := follow(t, newScreen(110, test.height, true))
			for range 2 {
				f.reports <- rolling()
				f.reports <- badImage()
			}
			for _, want := range test.want {
				g.Eventually(f.seen).Should(ContainSubstring(want))
			}

			close(f.reports)
			g.Eventually(f.ended).Should(Receive(BeNil()))
			g.Expect(f.everything()).To(Equal(prompt+drawn(t, badImage(), 110, now)), "in the end, all of it is left behind, and nothing else")
		})
	}
}
