// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// serve serves a source on a free port until the test ends. The server can be changed
// before it answers.
func serve(t *testing.T, source Source, change ...func(*Server)) *Server {
	t.Helper()
	g := NewWithT(t)
	server, err := Listen(t.Context(), 0, source, Options{Cluster: "kind-dev"})
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range change {
		f(server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		NewWithT(t).Expect(<-done).To(Succeed())
	})
	g.Eventually(func() string {
		m, _ := server.state.after(position{})
		return m.Connection.State
	}).ShouldNot(Equal(connecting))
	return server
}

// do sends a request and returns the answer and its body.
func do(t *testing.T, method, url, body string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	g := NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(request)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response, string(data)
}

func TestListensOnThisMachineOnly(t *testing.T) {
	server := serve(t, newFakeSource())
	address, ok := server.listener.Addr().(*net.TCPAddr)
	NewWithT(t).Expect(ok && address.IP.IsLoopback()).To(BeTrue())
}

func TestGuard(t *testing.T) {
	server := serve(t, newFakeSource(workload("web")))
	url := server.URL()
	root := strings.TrimSuffix(url, server.token+"/")
	host := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		method, url string
		change      func(*http.Request)
		want        int
	}{
		"the page":                     {"GET", url, nil, 200},
		"the list":                     {"GET", url + "api/workloads", nil, 200},
		"by the name localhost":        {"GET", url, host("localhost:8080"), 200},
		"its own origin":               {"GET", url + "api/workloads", header("Origin", strings.TrimSuffix(root, "/")), 200},
		"no slash at the end":          {"GET", strings.TrimSuffix(url, "/"), nil, 308},
		"another name, as by DNS":      {"GET", url, host("evil.example"), 403},
		"a name that begins like ours": {"GET", url, host("127.0.0.1.evil.example:80"), 403},
		"another origin":               {"GET", url + "api/workloads", header("Origin", "http://evil.example"), 403},
		"another port's origin":        {"GET", url + "api/workloads", header("Origin", "http://127.0.0.1:1"), 403},
		"an opaque origin":             {"GET", url + "api/workloads", header("Origin", "null"), 403},
		"a script elsewhere":           {"GET", url + "app.js", header("Sec-Fetch-Site", "cross-site"), 403},
		"no token":                     {"GET", root, nil, 403},
		"no token, the list":           {"GET", root + "api/workloads", nil, 403},
		"another token":                {"GET", root + "AAAA/api/workloads", nil, 403},
		"a part of the token":          {"GET", root + server.token[:10] + "/", nil, 403},
		"a form of another site":       {"POST", url + "api/plan", header("Content-Type", "text/plain"), 415},
		"a write":                      {"DELETE", url + "api/workloads/apps/Deployment/shop/web", nil, 405},
		"no such file":                 {"GET", url + "nothing.js", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if c.change == nil {
				c.change = func(*http.Request) {}
			}
			response, body := do(t, c.method, c.url, "{}", c.change)
			g.Expect(response.StatusCode).To(Equal(c.want), body)
			g.Expect(response.Header.Get("Content-Security-Policy")).To(HavePrefix("default-src 'none'; script-src 'self' 'sha256-"))
			g.Expect(response.Header.Get("Content-Security-Policy")).NotTo(ContainSubstring("unsafe"))
			g.Expect(response.Header.Get("Referrer-Policy")).To(Equal("no-referrer"))
			if c.want == 403 {
				g.Expect(body).NotTo(ContainSubstring(server.token))
			}
		})
	}
}

func TestThePolicyNamesTheOneScriptInTheTextOfThePage(t *testing.T) {
	g := NewWithT(t)
	page, err := files.ReadFile("web/index.html")
	g.Expect(err).NotTo(HaveOccurred())
	scripts := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllSubmatch(page, -1)
	g.Expect(scripts).To(HaveLen(1))
	hash := sha256.Sum256(scripts[0][1])
	g.Expect(contentPolicy).To(ContainSubstring("script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "';"))
}

func TestALinkMayLeadToThePage(t *testing.T) {
	server := serve(t, newFakeSource())
	response, _ := do(t, http.MethodGet, server.URL(), "", func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	})
	NewWithT(t).Expect(response.StatusCode).To(Equal(http.StatusOK))
}

func TestEachServerHasATokenOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	a, b := serve(t, newFakeSource()), serve(t, newFakeSource())
	g.Expect(a.token).NotTo(Equal(b.token))
	g.Expect(len(a.token)).To(BeNumerically(">=", 26), "128 bits in base 32")
}

func TestOneWorkload(t *testing.T) {
	g := NewWithT(t)
	server := serve(t, newFakeSource(workload("web", "Draining")))
	response, body := do(t, http.MethodGet, server.URL()+"api/workloads/apps/Deployment/shop/web", "")
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	var found report.Workload
	g.Expect(json.Unmarshal([]byte(body), &found)).To(Succeed())
	g.Expect(found).To(Equal(workload("web", "Draining")))

	response, body = do(t, http.MethodGet, server.URL()+"api/workloads/apps/Deployment/shop/api", "")
	g.Expect(response.StatusCode).To(Equal(http.StatusNotFound))
	g.Expect(body).To(ContainSubstring("apps/Deployment/shop/api was not found"))
}

func TestEventsBesideTheTimeline(t *testing.T) {
	g := NewWithT(t)
	source := newFakeSource(workload("web", "Draining"))
	for i := range maxEvents + 1 {
		source.events = append(source.events, Event{Time: start.Add(-time.Duration(i) * time.Second), Reason: fmt.Sprint("R", i)})
	}
	server := serve(t, source)
	url := server.URL() + "api/events/apps/Deployment/shop/web"
	_, body := do(t, http.MethodGet, url, "")
	var answer timelineAnswer
	g.Expect(json.Unmarshal([]byte(body), &answer)).To(Succeed())
	g.Expect(answer.Events).To(HaveLen(maxEvents))
	g.Expect(answer.Events[maxEvents-1].Reason).To(Equal("R0"), "the newest stays, as the last")
	g.Expect(answer.Spans).To(HaveLen(2), "of the workload and its pod")
	g.Expect(answer.EventsError).To(BeEmpty())

	source.set(func() { source.events, source.eventsErr = nil, errors.New("events is forbidden") })
	_, body = do(t, http.MethodGet, url, "")
	answer = timelineAnswer{}
	g.Expect(json.Unmarshal([]byte(body), &answer)).To(Succeed())
	g.Expect(answer.EventsError).To(Equal("events is forbidden"))
	g.Expect(answer.Spans).To(HaveLen(2), "what is known is told")
}

func TestPlanPassesTheChangeOn(t *testing.T) {
	g := NewWithT(t)
	source := newFakeSource(workload("web"))
	var asked Change
	source.plan = func(ref report.Ref, change Change) (report.Plan, error) {
		asked = change
		return report.Plan{Workload: ref, Pods: []report.PlannedPod{{Name: "web-0", Way: report.InPlace}}}, nil
	}
	server := serve(t, source)
	response, body := do(t, http.MethodPost, server.URL()+"api/plan",
		`{"workload":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"},
		"containers":[{"name":"main","image":"nginx:2","requests":{"cpu":"500m"}},{"name":"unchanged"}]}`)
	g.Expect(response.StatusCode).To(Equal(http.StatusOK), body)
	g.Expect(body).To(ContainSubstring(`"way":"InPlace"`))
	g.Expect(asked.Containers).To(HaveLen(1))
	g.Expect(asked.Containers[0].Image).To(Equal("nginx:2"))
	g.Expect(asked.Containers[0].Resources.Requests.Cpu().String()).To(Equal("500m"))
	g.Expect(asked.Containers[0].Resources.Limits).To(BeEmpty())
}

func TestPlanSaysWhatIsWrong(t *testing.T) {
	source := newFakeSource(workload("web"))
	source.plan = func(_ report.Ref, change Change) (report.Plan, error) {
		if change.Containers[0].Name == "gone" {
			return report.Plan{}, fmt.Errorf("deployment.apps/web: %w", ErrNotFound)
		}
		return report.Plan{}, errors.New("admission webhook denied the request")
	}
	server := serve(t, source)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no JSON":        {`x`, 400, "read the change"},
		"unknown field":  {`{"replicas":3}`, 400, "replicas"},
		"too long":       {`{"containers":[{"name":"` + strings.Repeat("x", maxBody) + `"}]}`, 400, "too large"},
		"nothing":        {`{"containers":[{"name":"main"}]}`, 400, "nothing changes"},
		"bad quantity":   {`{"containers":[{"name":"main","limits":{"memory":"much"}}]}`, 400, "limits.memory of container main: found \\\"much\\\", accepted is"},
		"less than zero": {`{"containers":[{"name":"main","requests":{"cpu":"-1"}}]}`, 400, "requests.cpu of container main"},
		"gone":           {`{"containers":[{"name":"gone","image":"x"}]}`, 404, "not found"},
		"refused":        {`{"containers":[{"name":"main","image":"x"}]}`, 502, "admission webhook denied the request"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := do(t, http.MethodPost, server.URL()+"api/plan", c.body)
			g := NewWithT(t)
			g.Expect(response.StatusCode).To(Equal(c.status))
			g.Expect(body).To(ContainSubstring(c.want))
		})
	}
}

func TestQuantitiesMayBeZero(t *testing.T) {
	list, err := parseQuantities("main", "requests", map[corev1.ResourceName]string{"cpu": "0"})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveKey(corev1.ResourceCPU))
}

// sse is one event of a stream.
type sse struct{ event, id, data string }

// openStream opens the stream of events; each call of next returns one of them.
func openStream(t *testing.T, server *Server, lastID string) (next func() sse, closeIt func()) {
	t.Helper()
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL()+"api/stream", nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Last-Event-ID", lastID)
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Header.Get("Content-Type")).To(Equal("text/event-stream"))
	lines := bufio.NewReader(response.Body)
	closeIt = func() { cancel(); _ = response.Body.Close() }
	t.Cleanup(closeIt)
	return func() sse {
		var found sse
		for {
			line, err := lines.ReadString('\n')
			g.Expect(err).NotTo(HaveOccurred())
			field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch field {
			case "":
				return found
			case "event":
				found.event = value
			case "id":
				found.id = value
			case "data":
				found.data = value
			}
		}
	}, closeIt
}

// told is a message as a page reads it.
type told struct {
	Full       bool
	Workloads  []report.Workload
	Removed    []string
	Connection connection
}

func read(t *testing.T, event sse) told {
	t.Helper()
	g := NewWithT(t)
	g.Expect(event.event).To(Equal("change"))
	var m told
	g.Expect(json.Unmarshal([]byte(event.data), &m)).To(Succeed())
	return m
}

func TestStreamTellsAllThenWhatChanges(t *testing.T) {
	g := NewWithT(t)
	source := newFakeSource(workload("a"), workload("b"))
	server := serve(t, source)
	next, closeIt := openStream(t, server, "")
	first := next()
	m := read(t, first)
	g.Expect(m.Full).To(BeTrue())
	g.Expect(m.Connection.State).To(Equal(connected))
	g.Expect(names(t, m.Workloads)).To(Equal([]string{"a", "b"}))

	source.set(func() { source.workloads[1] = workload("b", "Stuck") })
	second := next()
	m = read(t, second)
	g.Expect(m.Full).To(BeFalse())
	g.Expect(names(t, m.Workloads)).To(Equal([]string{"b"}))
	closeIt()

	// Meanwhile, no client looks.
	source.set(func() { source.workloads = []report.Workload{workload("b", "Stuck"), workload("c")} })
	g.Eventually(func() bool { _, _, ok := server.state.get("apps/Deployment/shop/c"); return ok }).Should(BeTrue())
	next, _ = openStream(t, server, second.id)
	m = read(t, next())
	g.Expect(m.Full).To(BeFalse(), "it goes on from where it was")
	g.Expect(names(t, m.Workloads)).To(Equal([]string{"c"}))
	g.Expect(m.Removed).To(Equal([]string{"apps/Deployment/shop/a"}))
}

func TestStreamBeatsWhenNothingHappens(t *testing.T) {
	g := NewWithT(t)
	server := serve(t, newFakeSource(), func(s *Server) { s.heartbeat = 5 * time.Millisecond })
	next, _ := openStream(t, server, "")
	g.Expect(next().event).To(Equal("change"))
	beat := next()
	g.Expect(beat.event).To(Equal("beat"))
	g.Expect(beat.id).To(BeEmpty(), "a beat leaves the position where it is")
}

func TestStreamTellsThatTheClusterIsLost(t *testing.T) {
	g := NewWithT(t)
	source := newFakeSource(workload("a"))
	server := serve(t, source)
	next, _ := openStream(t, server, "")
	next()
	source.set(func() { source.err = errors.New("dial tcp: connection refused") })
	m := read(t, next())
	g.Expect(m.Connection.State).To(Equal(lost))
	g.Expect(m.Connection.Error).To(Equal("dial tcp: connection refused"))
	source.set(func() { source.err = nil })
	g.Expect(read(t, next()).Connection.State).To(Equal(connected))
}

// stuckWriter is the connection of a reader that reads nothing. It has no deadline:
// who waits for it, waits for ever.
type stuckWriter struct {
	*httptest.ResponseRecorder

	once    sync.Once
	written chan struct{} // closed at the first write
	until   <-chan struct{}
}

func (w *stuckWriter) SetWriteDeadline(time.Time) error { return nil }

func (w *stuckWriter) Write([]byte) (int, error) {
	w.once.Do(func() { close(w.written) })
	<-w.until
	return 0, net.ErrClosed
}

// A reader that does not read delays no other reader.
func TestASlowReaderDelaysNoOther(t *testing.T) {
	g := NewWithT(t)
	web := workload("web")
	source := newFakeSource(web)
	server := serve(t, source)

	ctx, cancel := context.WithCancel(t.Context())
	stuck := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), written: make(chan struct{}), until: ctx.Done()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.serveStream(stuck, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/stream", nil))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-stuck.written

	next, _ := openStream(t, server, "")
	next()
	for i := range 20 {
		web.Replicas = int32(i + 1)
		g.Expect(server.state.replace([]report.Workload{web}, time.Now())).To(Succeed())
	}
	g.Expect(ended).NotTo(BeClosed(), "the slow reader is still there")
	source.set(func() { source.workloads = []report.Workload{web} }) // which is listed again now and then
	for {
		if m := read(t, next()); m.Workloads[0].Replicas == 20 {
			return
		}
	}
}
