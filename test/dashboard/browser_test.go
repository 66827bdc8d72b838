// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
)

// patience is how long the page may take for anything. It is long, since machines are
// busy; nothing waits for it to pass.
const patience = 2 * time.Minute

// browser is the one Chromium of all tests.
var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	path := os.Getenv("CHROMIUM")
	if path == "" {
		fmt.Fprintln(os.Stderr, "CHROMIUM names no browser: run make test-browser, which installs one")
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()
	defer func() { _ = chromedp.Cancel(ctx) }() // it waits for the browser to end, with all its processes
	if err := chromedp.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "start", path+":", err)
		return 1
	}
	browser = ctx //nolint:fatcontext // TestMain can hand it to the tests in no other way.
	return m.Run()
}

// page is a tab that shows the dashboard.
type page struct {
	t   *testing.T
	g   *WithT
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string
}

// look says how a page is looked at.
type look struct {
	width, height int64
	dark          bool
	hash          string
	// before is done in the tab before it opens the page.
	before []chromedp.Action
}

// open shows what a source says until the test ends. What the console complains about
// fails the test, unless forgive is called.
func open(t *testing.T, source dashboard.Source, how look) *page {
	t.Helper()
	g := NewWithT(t)
	return openAt(t, serve(t, g, source), how)
}

// serve serves a source until the test ends, and returns the address.
func serve(t *testing.T, g *WithT, source dashboard.Source) string {
	t.Helper()
	server, err := dashboard.Listen(t.Context(), 0, source, dashboard.Options{Cluster: "kind-dev"})
	g.Expect(err).NotTo(HaveOccurred())
	// That of the test ends before its cleanups: a page that is open still would complain.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		g.Expect(<-done).To(Succeed())
	})
	return server.URL()
}

func openAt(t *testing.T, url string, how look) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &page{t: t, g: NewWithT(t), ctx: ctx, url: url}
	chromedp.ListenTarget(ctx, p.note)
	scheme := "light"
	if how.dark {
		scheme = "dark"
	}
	if how.width == 0 {
		how.width, how.height = 1440, 960
	}
	// This comes before the page is opened: the console tells why it did not come up.
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.g.Expect(p.problems).To(BeEmpty(), "the console complained")
	})
	p.run(how.before...)
	p.run(
		log.Enable(),
		chromedp.EmulateViewport(how.width, how.height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
		chromedp.Navigate(url+how.hash),
	)
	p.eventually(`document.getElementById('live').textContent`, "Live")
	return p
}

// failures is an action after which the tab does not get a file at first.
type failures struct {
	name   string
	left   int
	passed atomic.Bool
}

// Do has the browser ask before it requests the file.
func (f *failures) Do(ctx context.Context) error {
	chromedp.ListenTarget(ctx, func(event any) {
		request, ok := event.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		if f.left > 0 {
			f.left--
			go func() { _ = fetch.FailRequest(request.RequestID, network.ErrorReasonConnectionReset).Do(ctx) }()
			return
		}
		f.passed.Store(true)
		go func() { _ = fetch.ContinueRequest(request.RequestID).Do(ctx) }()
	})
	return fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "*/" + f.name + "*"}}).Do(ctx)
}

// note keeps what the console complains about: exceptions, refused scripts and styles,
// files that are missing.
func (p *page) note(event any) {
	var problem string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventConsoleAPICalled:
		problem = fmt.Sprint("console.", e.Type)
	}
	if problem != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, problem)
	}
}

// forgive forgets complaints that the test brought about, each of which contains text.
func (p *page) forgive(text string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.g.Expect(problem).To(ContainSubstring(text))
	}
	p.problems = nil
}

func (p *page) run(actions ...chromedp.Action) {
	p.t.Helper()
	p.g.Expect(chromedp.Run(p.ctx, actions...)).To(Succeed())
}

// eval returns what a script says.
func (p *page) eval(script string) any {
	p.t.Helper()
	var result any
	p.run(chromedp.Evaluate(script, &result))
	return result
}

// read puts what a script returns into a value.
func (p *page) read(script string, into any) {
	p.t.Helper()
	var text string
	p.run(chromedp.Evaluate("JSON.stringify("+script+")", &text))
	p.g.Expect(json.Unmarshal([]byte(text), into)).To(Succeed())
}

// eventually waits until a script returns a value, or something that matches.
func (p *page) eventually(script string, want any) {
	p.t.Helper()
	p.g.Eventually(func() (any, error) {
		var result any
		err := chromedp.Run(p.ctx, chromedp.Evaluate(script, &result))
		return result, err
	}).WithTimeout(patience).WithPolling(30*time.Millisecond).Should(matcher(want), script)
}

func matcher(want any) OmegaMatcher {
	if m, ok := want.(OmegaMatcher); ok {
		return m
	}
	return BeEquivalentTo(want)
}

// text is a script that returns the text of an element as it is seen.
func text(selector string) string {
	return fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? 'no such element')`, selector)
}

// press sends keys as a keyboard does.
func (p *page) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.run(chromedp.KeyEvent(key))
	}
}

// focused is what a screen reader would call what has the focus.
func (p *page) focused() string {
	p.t.Helper()
	name, _ := p.eval(`(() => { const e = document.activeElement; return e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || e.id; })()`).(string)
	return strings.TrimSpace(name)
}

// picture leaves a picture of the whole page in .out.
func (p *page) picture(name string) {
	p.t.Helper()
	var png []byte
	p.run(chromedp.FullScreenshot(&png, 100))
	folder := filepath.Join("..", "..", ".out")
	p.g.Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	p.g.Expect(os.WriteFile(filepath.Join(folder, "dashboard-"+name+".png"), png, 0o644)).To(Succeed())
}
