// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build browser

package dashboard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/dashboard"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const (
	webHash = "#/apps/Deployment/shop/web"
	// title is the heading of what is shown.
	title = "main > :not([hidden]) h2"
)

func TestFourStuckWorkloadsAreNamedOnOneScreenWithAdvice(t *testing.T) {
	p := open(t, newSource(everything()...), look{})
	p.eventually(text(title), "4 workloads need help")
	var boxes []struct {
		Name, Text  string
		Top, Bottom float64
	}
	p.read(`[...document.querySelectorAll('.card')].map((card) => ({
		name: card.querySelector('a').innerText, text: card.innerText,
		top: card.getBoundingClientRect().top, bottom: card.getBoundingClientRect().bottom}))`, &boxes)
	p.g.Expect(boxes).To(HaveLen(4))
	says := map[string]string{}
	for _, box := range boxes {
		says[box.Name] = box.Text
		p.g.Expect(box.Top).To(BeNumerically(">=", 0))
		p.g.Expect(box.Bottom).To(BeNumerically("<=", 960), "%s is on the first screen", box.Name)
	}
	p.g.Expect(says["orders"]).To(And(ContainSubstring("ImagePullBackOff"), ContainSubstring("orders-4"), ContainSubstring("14 min"), ContainSubstring("Name an image that exists")))
	p.g.Expect(says["orders"]).To(ContainSubstring("kubectl insitu undo statefulset.apps.kruise.io/orders -n shop"))
	p.g.Expect(says["cart"]).To(And(ContainSubstring("HookHeld"), ContainSubstring("3 h"), ContainSubstring("kubectl insitu why cloneset.apps.kruise.io/cart -n shop")))
	p.g.Expect(says["index"]).To(And(ContainSubstring("ResizeInfeasible"), ContainSubstring("Ask for sizes that fit")))
	p.g.Expect(says["ledger"]).To(And(ContainSubstring("ClaimCannotGrow"), ContainSubstring("2 d"), ContainSubstring("data-ledger-2")))
	p.eventually(`[...document.querySelectorAll('#list b')].slice(0, 4).map((e) => e.innerText).sort().join()`, "cart,index,ledger,orders")
}

func TestWhatHoldsARolloutIsNamedInTheOverview(t *testing.T) {
	w := makeWorkload("CloneSet", "shop", "basket", 2)
	w.Phase, w.Message = report.Progressing, "2 of 2 pods are to be updated"
	w.Blockers = []report.Blocker{
		{Pod: "basket-1", Step: "Waiting", Reason: "MaxUnavailable", Message: "1 pod is unavailable"},
		{Pod: "basket-0", Step: "HookHeld", Reason: "InPlaceUpdateHook", Message: "held by label example.com/hold"},
	}
	p := open(t, newSource(w), look{})
	p.eventually(`document.querySelector('[aria-label="Under way"] tbody td:last-child')?.innerText`,
		"InPlaceUpdateHook basket-0: held by label example.com/hold 2 of 2 pods are to be updated")
}

func TestARolloutIsSeenAsItHappens(t *testing.T) {
	s := newSource(everything()...)
	p := open(t, s, look{hash: webHash})
	p.eventually(text(title), "web")
	p.eventually(`document.querySelectorAll('.cell.s-Old').length`, 12)
	p.eval(`window.wasHere = true`)

	s.set(func() { enter(s.find("web"), 3, "Draining", metav1.Now()) })
	p.eventually(`document.querySelector('[data-pod="web-3"]').className`, ContainSubstring("s-Draining"))
	p.eventually(`document.querySelector('[data-pod="web-3"]').getAttribute('aria-label')`, "web-3, Draining, EndpointsListPod, not available")
	p.eventually(`document.querySelector('[data-pod="web-3"]').closest('.group').getAttribute('aria-label')`, "Draining, 1 pod")
	s.set(func() { enter(s.find("web"), 3, "Settled", metav1.Now()) })
	p.eventually(`document.querySelector('[data-pod="web-3"]').className`, ContainSubstring("s-Settled"))
	p.eventually(text(".head .facts dd"), "1 of 12")
	p.eventually(text(".entries"), And(ContainSubstring("web-3"), ContainSubstring("Draining → "), ContainSubstring("Updated")))
	p.g.Expect(p.eval(`window.wasHere`)).To(BeTrue(), "the page was not loaded again")

	s.set(func() {
		web := s.find("web")
		web.Phase, web.Reason = report.Stalled, "ProgressDeadlineExceeded"
	})
	p.eventually(text("#announce"), "web in shop is now Stalled: ProgressDeadlineExceeded")
	p.eventually(`document.title`, "Stalled · web · Insitu")

	s.set(func() { s.workloads = fourStuck() })
	p.eventually(text("main"), ContainSubstring("There is no Deployment web in namespace shop"))
}

func TestTheClusterIsLostAndFoundAgain(t *testing.T) {
	s := newSource(everything()...)
	p := open(t, s, look{hash: webHash})
	p.eventually(text(title), "web")
	s.set(func() { s.err = errors.New("dial tcp 10.0.0.1:6443: connect: connection refused") })
	p.eventually(text("#banner"), And(ContainSubstring("The cluster cannot be read: dial tcp 10.0.0.1:6443: connect: connection refused"), ContainSubstring("as of")))
	p.eventually(text("#live"), "Cluster lost")
	p.g.Expect(p.eval(`document.getElementById('banner').checkVisibility()`)).To(BeTrue())
	p.g.Expect(p.eval(text(title))).To(Equal("web"), "what was read stays")
	s.set(func() { s.err = nil })
	p.eventually(text("#live"), "Live")
	p.eventually(`document.getElementById('banner').hidden`, true)
}

// A browser stops loading when a network of the machine comes or goes, as one does with
// each container that Docker starts.
func TestAPageGetsInTheEndWhatDidNotComeAtFirst(t *testing.T) {
	for _, name := range []string{"app.js", "words.js", "style.css", "api/about", "api/events", "api/stream"} {
		t.Run(name, func(t *testing.T) {
			f := failures{name: name, left: 1}
			p := open(t, newSource(everything()...), look{hash: webHash, before: []chromedp.Action{&f}})
			p.g.Eventually(f.passed.Load).WithTimeout(patience).Should(BeTrue())
			p.eventually(text(title), "web")
			p.eventually(text("#cluster"), ContainSubstring("kind-dev"))
			p.eventually(`getComputedStyle(document.getElementById('announce')).position`, "absolute")
			p.eventually(text(".timeline"), Not(ContainSubstring("cannot be read")))
			p.forgive("ERR_CONNECTION_RESET")
		})
	}
}

// An extension of the browser may add what this page's policy refuses.
func TestAPageDoesNotLoadAgainForWhatIsNotItsOwn(t *testing.T) {
	p := open(t, newSource(everything()...), look{})
	var reloads int
	p.run(chromedp.Evaluate(`new Promise((resolve) => {
		let reloads = 0;
		const later = window.setTimeout;
		window.setTimeout = (f, delay) => { reloads += String(f).includes('reload'); return later(f, delay); };
		const link = document.createElement('link');
		link.rel = 'stylesheet';
		link.href = 'nothing.css';
		link.onerror = () => later(() => resolve(reloads), 0);
		document.head.append(link);
	})`, &reloads, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	p.g.Expect(reloads).To(BeZero())
	p.forgive("nothing.css")
}

func TestAPageWithoutItsServerSaysSo(t *testing.T) {
	s := newSource(everything()...)
	server, err := dashboard.Listen(t.Context(), 0, s, dashboard.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	stop, done := serveUntil(t, server)
	p := openAt(t, server.URL(), look{})
	p.eventually(text(title), "4 workloads need help")
	stop()
	NewWithT(t).Expect(<-done).To(Succeed())
	p.eventually(text("#banner"), ContainSubstring("Is kubectl insitu dashboard still running?"))
	p.forgive("ERR_")
}

func TestFilters(t *testing.T) {
	p := open(t, newSource(everything()...), look{})
	shown := `[...document.querySelectorAll('#list b')].map((e) => e.innerText).join()`
	p.eventually(`document.querySelectorAll('#list li').length`, 10)
	p.press("/")
	p.eventually(`document.activeElement.id`, "filter")
	p.press("l", "e", "d", "g")
	p.eventually(shown, "ledger")
	p.press(kb.Escape)
	p.eventually(`document.querySelectorAll('#list li').length`, 10)
	p.run(chromedp.SetValue("#namespace", "billing", chromedp.ByQuery))
	p.eval(`document.getElementById('namespace').dispatchEvent(new Event('change'))`)
	p.eventually(shown, "ledger,postgres")
	p.run(chromedp.Click(".chip.p-Healthy", chromedp.ByQuery))
	p.eventually(shown, "ledger")
	p.press("/", "x", "y", "z")
	p.eventually(text("#none"), "None of 10 workloads matches.")
}

// Everything is reached without a mouse: the list, the grid, the plan.
func TestKeyboardOnly(t *testing.T) {
	s := newSource(everything()...)
	s.plan = report.Plan{Changes: []string{}, Pods: []report.PlannedPod{{Name: "cart-0", Way: report.InPlace}}}
	p := open(t, s, look{})
	p.eventually(`document.querySelectorAll('#list li').length`, 10)
	p.press(kb.Tab)
	p.g.Expect(p.focused()).To(Equal("Skip to the details"))
	p.g.Expect(p.eval(`document.activeElement.getBoundingClientRect().top >= 0`)).To(BeTrue(), "it is seen while it has the focus")
	p.press("/", kb.ArrowDown)
	p.g.Expect(p.focused()).To(HavePrefix("ledger, StatefulSet in billing, Stalled"))
	p.press(kb.ArrowDown, kb.ArrowDown)
	p.g.Expect(p.focused()).To(HavePrefix("cart, CloneSet in shop, Stalled"))
	outline := p.eval(`getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth`)
	p.g.Expect(outline).To(Equal("solid2px"), "the focus is seen")
	p.press(kb.Enter)
	p.eventually(text(title), "cart")

	// Tab on until the grid, which is one stop; then the arrows.
	p.tabTo("cart-0, Held by a hook, HookHeld")
	p.eventually(text(".details h4"), "cart-0")
	p.press(kb.ArrowRight)
	p.g.Expect(p.focused()).To(HavePrefix("cart-1,"))
	p.press(kb.ArrowDown)
	p.g.Expect(p.focused()).To(Or(HavePrefix("cart-3,"), HavePrefix("cart-4,")), "the step below")
	p.press(kb.End)
	p.g.Expect(p.focused()).To(HavePrefix("cart-5,"))
	p.press(kb.Enter)
	p.g.Expect(p.eval(`document.activeElement.getAttribute('aria-selected')`)).To(Equal("true"))
	s.setAndAwait(t, func() { enter(s.find("cart"), 5, "Draining", metav1.Now()) })
	p.eventually(`document.activeElement.getAttribute('aria-label')`, HavePrefix("cart-5, Draining"))

	p.tabTo("Image")
	p.press("X")
	p.press(kb.Enter)
	p.eventually(text(".plan .summary"), "1 in place, nothing restarts")
	p.tabTo("Plan")
	p.press(kb.Escape)
	p.eventually(text(title), "4 workloads need help")
}

// A window that is not in front gets no event when its focus moves, and the tabs of a
// headless Chromium are not in front of each other. The events are taken away here, so
// that every browser does what the worst one does.
func TestThePodWithTheFocusIsShownWithoutFocusEvents(t *testing.T) {
	p := open(t, newSource(everything()...), look{hash: webHash})
	p.eventually(`document.querySelectorAll('.cell').length`, 12)
	p.eval(`['focus', 'focusin'].forEach((kind) => addEventListener(kind, (event) => event.stopImmediatePropagation(), true))`)
	p.eval(`document.querySelector('[data-pod="web-7"]').focus()`)
	p.eventually(text(".details h4"), "web-7")
	p.press(kb.ArrowRight)
	p.g.Expect(p.eval(text(".details h4"))).To(Equal("web-8"), "the page moved the focus itself")
}

// tabTo presses Tab until something with this name has the focus.
func (p *page) tabTo(name string) {
	p.t.Helper()
	var passed []string
	for range 60 {
		p.press(kb.Tab)
		found := p.focused()
		if found == name {
			return
		}
		passed = append(passed, found)
	}
	p.t.Fatalf("Tab never came to %q, but to %q", name, passed)
}

func TestPlanBeforeApply(t *testing.T) {
	s := newSource(everything()...)
	s.plan = report.Plan{
		Changes: []string{"spec.template.spec.containers[api].image: " + newImage + " -> registry.example/shop/api:2.0.0"},
		Pods: []report.PlannedPod{
			{Name: "web-0", Way: report.InPlace, Restarts: []string{"api"}, Resizes: []string{"api cpu 500m -> 1"}, Drains: true, Feasibility: "Fits"},
			{Name: "web-1", Way: report.InPlace, Restarts: []string{"api"}, Resizes: []string{"api cpu 500m -> 1"}, Drains: true, Feasibility: "Deferred", FeasibilityMessage: "node-2 has 300m free"},
			{Name: "web-2", Way: report.Recreate, Reason: "QOSClassChanges", Message: "the class of the pod would change from Burstable to Guaranteed"},
		},
		Claims:   []report.PlannedClaim{{Name: "data-web-0", Change: "10Gi -> 20Gi", Blocked: true, Reason: "NotExpandable", Message: "storage class local-ssd does not allow it"}},
		Refusals: []string{`admission webhook "images.example.com" denied the request: 2.0.0 is not signed`},
		Notes:    []string{"The quota of the namespace could not be read: resourcequotas is forbidden."},
	}
	p := open(t, s, look{hash: webHash})
	p.eventually(`document.querySelector('.plan [name=image]')?.value`, newImage)
	p.g.Expect(p.eval(`document.querySelector('.plan [name=requests-cpu]').value`)).To(Equal("500m"))
	p.run(
		chromedp.SetValue(".plan [name=image]", "registry.example/shop/api:2.0.0", chromedp.ByQuery),
		chromedp.SetValue(".plan [name=requests-cpu]", "1", chromedp.ByQuery),
	)
	s.setAndAwait(t, func() { enter(s.find("web"), 0, "Draining", metav1.Now()) })
	p.eventually(`document.querySelector('[data-pod="web-0"]').className`, ContainSubstring("s-Draining"))
	p.g.Expect(p.eval(`document.querySelector('.plan [name=requests-cpu]').value`)).To(Equal("1"), "what is typed stays while pods move")
	p.run(chromedp.Click(".plan button[type=submit]", chromedp.ByQuery))
	p.eventually(text(".plan .summary"), "2 in place, 1 recreated, containers restart in 2 pods")
	p.g.Expect(p.eval(text(".plan .result"))).To(And(
		ContainSubstring("Deferred: node-2 has 300m free"), ContainSubstring("QOSClassChanges"), ContainSubstring("2.0.0 is not signed"),
		ContainSubstring("could not be read"), ContainSubstring("NotExpandable"), ContainSubstring("drained for it"),
		ContainSubstring("kubectl insitu set image deployment.apps/web -n shop api=registry.example/shop/api:2.0.0"),
		ContainSubstring("kubectl insitu set resources deployment.apps/web -n shop -c api --requests=cpu=1")))
	p.g.Expect(s.asked).To(HaveLen(1))
	p.g.Expect(s.asked[0].Containers[0].Resources.Requests).To(HaveLen(1), "only what differs is asked")
	p.picture("plan-light")

	p.run(chromedp.SetValue(".plan [name=limits-memory]", "a lot", chromedp.ByQuery), chromedp.Click(".plan button[type=submit]", chromedp.ByQuery))
	p.eventually(text(".plan .problem"), `limits.memory of container api: found "a lot", accepted is an amount such as 500m or 256Mi`)
	p.forgive("400 (Bad Request)")
}

func TestCopyingACommand(t *testing.T) {
	p := open(t, newSource(fourStuck()...), look{})
	p.eventually(`document.querySelectorAll('.copy').length`, 5)
	p.eval(`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})`)
	p.run(chromedp.Click(`.copy[aria-label$="undo statefulset.apps.kruise.io/orders -n shop"]`, chromedp.ByQuery))
	p.eventually(`window.copied`, "kubectl insitu undo statefulset.apps.kruise.io/orders -n shop")
	p.eventually(text("#announce"), "Copied")
}

func TestAThousandPods(t *testing.T) {
	big := makeWorkload("CloneSet", "shop", "fleet", 1000)
	rollOut(&big)
	s := newSource(append(fourStuck(), big)...)
	p := open(t, s, look{hash: "#/apps.kruise.io/CloneSet/shop/fleet"})
	p.eventually(`document.querySelectorAll('.cell').length`, 1000)
	steps := []string{"Settled", "Settled", "Draining", "Restarting", "Verifying", "Waiting", "Waiting"}
	began := time.Now()
	s.set(func() {
		fleet := s.find("fleet")
		for i := range fleet.Pods {
			if i < 700 {
				enter(fleet, i, steps[i*len(steps)/700], metav1.Now())
			}
		}
	})
	p.eventually(`document.querySelectorAll('.cell.s-Settled').length`, 200)
	t.Logf("700 of 1000 pods moved and were drawn in %v", time.Since(began).Round(time.Millisecond))
	// How long it takes is up to the machine; what is touched is not.
	var drawn struct{ All, One, Took float64 }
	p.run(chromedp.Evaluate(drawScript, &drawn, awaitPromise))
	t.Logf("drawing all 1000 pods again took %.0f ms, and touched %.0f nodes; one pod touched %.0f", drawn.Took, drawn.All, drawn.One)
	p.g.Expect(drawn.All).To(BeNumerically("<", 10*1000))
	p.g.Expect(drawn.One).To(And(BeNumerically(">", 0), BeNumerically("<", 100)), "one pod moves, the others stay as they are")
	p.picture("thousand-light")
}

func TestNoHorizontalScrollOnAPhone(t *testing.T) {
	s := newSource(everything()...)
	s.plan = report.Plan{Pods: []report.PlannedPod{{Name: "a-pod-with-a-rather-long-name-5f6b8d9c7-x2k9q", Way: report.Recreate, Message: "the field spec.template.spec.volumes changes"}}}
	p := open(t, s, look{width: 380, height: 800})
	p.eventually(text(title), "4 workloads need help")
	p.fits()
	p.picture("phone-overview-light")
	for _, hash := range []string{"#/apps.kruise.io/StatefulSet/billing/ledger", webHash} {
		p.eval(fmt.Sprintf(`location.hash = %q`, hash))
		p.eventually(`document.querySelectorAll('.cell').length`, BeNumerically(">", 0))
		p.fits()
	}
	p.run(chromedp.SetValue(".plan [name=image]", "x", chromedp.ByQuery), chromedp.Click(".plan button[type=submit]", chromedp.ByQuery))
	p.eventually(text(".plan .summary"), ContainSubstring("1 recreated"))
	p.fits()
	p.picture("phone-web-light")
}

// fits makes sure that nothing is wider than the window.
func (p *page) fits() {
	p.t.Helper()
	p.g.Expect(p.eval(`document.documentElement.scrollWidth`)).To(BeNumerically("<=", 380))
}

// Light and dark, at rest and in the middle: pictures, contrast, and names of all that can
// be used.
func TestPicturesContrastAndNames(t *testing.T) {
	s := newSource(everything()...)
	url := serve(t, NewWithT(t), s)
	s.story(t)
	s.set(func() {
		s.events = []dashboard.Event{
			{Time: time.Now().Add(-8 * time.Minute), Reason: "SuccessfulUpdatePodInPlace", Message: "web is updated in place to revision web-7d9c5b6f4", Count: 1, Reporter: "insitu"},
			{Time: time.Now().Add(-5 * time.Minute), Pod: "web-3", Warning: true, Reason: "Unhealthy", Message: "Readiness probe failed: HTTP probe failed with statuscode: 503", Count: 4, Reporter: "kubelet"},
			{Time: time.Now().Add(-2 * time.Minute), Pod: "web-6", Reason: "Pulled", Message: "Container image " + newImage + " already present on machine", Count: 1, Reporter: "kubelet"},
		}
	})
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := openAt(t, url, look{dark: scheme == "dark"})
			p.eventually(text(title), "4 workloads need help")
			p.inspect()
			p.picture("overview-" + scheme)
			p.eval(fmt.Sprintf(`location.hash = %q`, webHash))
			p.eventually(`document.querySelectorAll('.lane .span').length`, BeNumerically(">", 20))
			p.eventually(text(".entries"), ContainSubstring("Unhealthy"))
			p.run(chromedp.Focus(`[data-pod="web-7"]`, chromedp.ByQuery))
			p.eventually(text(".details h4"), "web-7")
			p.inspect()
			p.picture("web-" + scheme)
			p.eval(`location.hash = '#/apps.kruise.io/StatefulSet/billing/ledger'`)
			p.eventually(text(title), "ledger")
			p.run(chromedp.Focus(`[data-pod="ledger-2"]`, chromedp.ByQuery))
			p.eventually(text(".details h4"), "ledger-2")
			p.inspect()
			p.picture("ledger-" + scheme)
		})
	}
}

// Every step has a pair of colors, also those that no picture shows.
func TestContrastOfAllSteps(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		// The first page must be gone when the server of the second one stops: it, too,
		// is told of connections that break.
		t.Run(scheme, func(t *testing.T) {
			p := open(t, newSource(everything()...), look{dark: scheme == "dark"})
			p.eventually(text(title), "4 workloads need help")
			p.run(chromedp.Evaluate(`(async () => {
				const {states, phases, stepBadge, phaseBadge} = await import('./words.js');
				document.querySelector('main').append(...Object.keys(states).map(stepBadge), ...Object.keys(phases).map(phaseBadge));
			})()`, nil, awaitPromise))
			p.g.Expect(p.eval(`document.querySelectorAll('main > .step').length`)).To(BeEquivalentTo(14))
			p.contrast()
		})
	}
}

func TestTheme(t *testing.T) {
	p := open(t, newSource(everything()...), look{dark: true})
	ground := `getComputedStyle(document.body).backgroundColor`
	dark := p.eval(ground)
	p.run(chromedp.Click("#theme", chromedp.ByQuery))
	p.eventually(text("#theme"), "Theme: light")
	light := p.eval(ground)
	p.g.Expect(light).NotTo(Equal(dark))
	p.run(chromedp.Reload())
	p.eventually(ground, light)
	p.run(chromedp.Click("#theme", chromedp.ByQuery))
	p.eventually(ground, dark)
}

// inspect makes sure that what is seen can be read, and that what can be used has a name.
func (p *page) inspect() {
	p.t.Helper()
	p.contrast()
	p.names()
}

// contrast computes that of each text with its ground, by WCAG 2.2, level AA.
func (p *page) contrast() {
	p.t.Helper()
	var found struct {
		Checked int
		Poor    []string
	}
	p.read(contrastScript, &found)
	p.g.Expect(found.Checked).To(BeNumerically(">", 20))
	p.g.Expect(found.Poor).To(BeEmpty())
}

// names asks the browser what a screen reader would be told.
func (p *page) names() {
	p.t.Helper()
	var nodes []*accessibility.Node
	p.run(chromedp.ActionFunc(func(ctx cdpContext) (err error) {
		nodes, err = accessibility.GetFullAXTree().Do(ctx)
		return err
	}))
	interactive := map[string]int{"link": 0, "button": 0, "textbox": 0, "searchbox": 0, "combobox": 0, "option": 0, "listbox": 0, "navigation": 0, "region": 0}
	for _, node := range nodes {
		role := value(node.Role)
		if _, ok := interactive[role]; !ok || node.Ignored {
			continue
		}
		interactive[role]++
		p.g.Expect(value(node.Name)).NotTo(BeEmpty(), "a %s has no name: %v", role, node.BackendDOMNodeID)
	}
	p.g.Expect(interactive["link"]).To(BeNumerically(">", 5))
	p.g.Expect(interactive["button"]).To(BeNumerically(">", 3))
}
