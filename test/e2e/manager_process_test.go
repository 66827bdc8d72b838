// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// buildManager builds the manager, as a program of this machine.
func buildManager(ctx context.Context) (path string) {
	GinkgoHelper()
	path = filepath.Join(GinkgoT().TempDir(), "insitu")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "../../cmd/insitu")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return path
}

// managerProcess is the manager as a process of this machine, which acts in one
// namespace with the permissions of the operator. It reaches the API server
// through a proxy, which sees every write, and can kill the process with SIGKILL
// when a write has happened, before the process learns of it.
type managerProcess struct {
	program, namespace, dir string
	server                  *url.URL
	transport               http.RoundTripper
	// isFatal says whether the process dies of a write, by the number that it
	// has among all of all lives, from 1.
	isFatal func(number int, w write) bool

	mu     sync.Mutex
	writes []write
	life   *managerLife // nil while the process is dead
	log    *os.File
}

// managerLife is one life of the process, with a proxy of its own: what an
// earlier life had sent is not heard in a later one.
type managerLife struct {
	command *exec.Cmd
	proxy   *httptest.Server
}

// write is one that succeeded.
type write struct {
	verb, resource, name string
	body                 []byte
}

func (w write) String() string { return w.verb + " " + w.resource + " " + w.name }

// newManagerProcess returns one that is yet to be started. It ends with the spec.
func newManagerProcess(program, namespace string) *managerProcess {
	GinkgoHelper()
	config, err := ctrl.GetConfig()
	Expect(err).NotTo(HaveOccurred())
	config.Impersonate = rest.ImpersonationConfig{
		UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace, "system:authenticated"},
	}
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	m := &managerProcess{
		program: program, namespace: namespace, dir: GinkgoT().TempDir(), server: server, transport: transport,
		isFatal: func(int, write) bool { return false },
	}
	Expect(os.WriteFile(filepath.Join(m.dir, "config.yaml"), fmt.Appendf(nil, `
apiVersion: config.insitu.dev/v1alpha1
kind: InsituConfiguration
namespaces: [%s]
leaderElection: {enabled: false}
metrics: {bindAddress: "0"}
health: {bindAddress: "0"}
logging: {format: text, verbosity: 2}
`, namespace), 0o600)).To(Succeed())
	m.log, err = os.Create(filepath.Join(m.dir, "log"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		m.end()
		if CurrentSpecReport().Failed() {
			content, _ := os.ReadFile(m.log.Name())
			AddReportEntry("Manager of "+namespace, string(content[max(0, len(content)-20_000):]))
		}
		_ = m.log.Close()
	})
	return m
}

// start starts the process.
func (m *managerProcess) start() {
	GinkgoHelper()
	m.mu.Lock()
	defer m.mu.Unlock()
	life := &managerLife{}
	life.proxy = httptest.NewServer(m.handler(life))
	kubeconfig := filepath.Join(m.dir, "kubeconfig")
	Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q}}]
contexts: [{name: lab, context: {cluster: lab, user: ""}}]
current-context: lab
`, life.proxy.URL), 0o600)).To(Succeed())
	life.command = exec.Command(m.program, "--config="+filepath.Join(m.dir, "config.yaml"), "--kubeconfig="+kubeconfig)
	life.command.Stdout, life.command.Stderr = m.log, m.log
	Expect(life.command.Start()).To(Succeed())
	m.life = life
}

// end kills the process, if it is alive.
func (m *managerProcess) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

// kill is end for whoever has the lock.
func (m *managerProcess) kill() {
	life := m.life
	if life == nil {
		return
	}
	m.life = nil
	_ = life.command.Process.Kill()
	_ = life.command.Wait()
	// Not at once: the request that is answered meanwhile would not let it.
	go func() {
		life.proxy.CloseClientConnections()
		life.proxy.Close()
	}()
}

// isAlive reports whether no write was fatal since the process was started.
func (m *managerProcess) isAlive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil
}

// written returns the writes so far.
func (m *managerProcess) written() []write {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.writes)
}

// handler is the proxy of one life.
func (m *managerProcess) handler(life *managerLife) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(m.server) },
		Transport:     m.transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") || strings.Contains(r.URL.Path, "/events") {
			proxy.ServeHTTP(w, r)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.life != life {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if answer.Code < http.StatusMultipleChoices {
			m.writes = append(m.writes, writeOf(r, body, answer.Body.Bytes()))
			if m.isFatal(len(m.writes), m.writes[len(m.writes)-1]) {
				m.kill()
				panic(http.ErrAbortHandler)
			}
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// writeOf describes a request that succeeded.
func writeOf(r *http.Request, body, answer []byte) write {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path[0] == "api" {
		path = path[2:]
	} else {
		path = path[3:]
	}
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	w := write{verb: strings.ToLower(r.Method), resource: path[0], body: body}
	if w.verb == "post" {
		w.verb, w.name = "create", createdName(answer)
	}
	if len(path) > 1 {
		w.name = path[1]
	}
	if len(path) > 2 {
		w.resource += "/" + path[2]
	}
	return w
}

// createdName returns the name of an object as the API server wrote it.
func createdName(answer []byte) string {
	if object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil); err == nil {
		if named, err := meta.Accessor(object); err == nil {
			return named.GetName()
		}
	}
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(answer, &object)
	return object.Metadata.Name
}

// outlive starts the process whenever it is dead, until something is reached.
// Between two lives it calls a function with the write that was fatal.
func (m *managerProcess) outlive(ctx context.Context, reached func(context.Context) bool, between func(context.Context, write)) {
	GinkgoHelper()
	deadline := time.Now().Add(crashPatience)
	for {
		Expect(time.Now()).To(BeTemporally("<", deadline), "in namespace %s, after %d writes", m.namespace, len(m.written()))
		if !m.isAlive() {
			if all := m.written(); len(all) > 0 {
				between(ctx, all[len(all)-1])
			}
			m.start()
		}
		if reached(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// crashPatience is how long a rollout may take whose manager dies all the time.
const crashPatience = 12 * time.Minute
