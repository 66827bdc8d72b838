// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

//go:embed web
var files embed.FS

// The server's times.
const (
	// heartbeat is less than the time after which proxies close a silent connection,
	// and the page takes three missing ones for a lost server.
	heartbeat = 10 * time.Second
	// writeTimeout is how long a reader of the stream may take for one message.
	writeTimeout = 30 * time.Second
	// requestTimeout is how long the source may take for a plan or for events.
	requestTimeout = 60 * time.Second
)

// Options are what the page is told of its cluster. All are for people to read.
type Options struct {
	// Cluster is what the kubeconfig calls the connection.
	Cluster string `json:"cluster,omitempty"`
	// Namespace is the one that is shown; empty for all.
	Namespace string `json:"namespace,omitempty"`
	// Version is that of the plugin.
	Version string `json:"version,omitempty"`
}

// Server serves the dashboard to whoever has its address.
type Server struct {
	options   Options
	listener  net.Listener
	token     string
	source    Source
	state     *state
	timelines *timelines
	clock     clock.Clock
	started   time.Time
	heartbeat time.Duration
}

// Listen opens a port of 127.0.0.1 for a dashboard; 0 is any free one. Nothing is
// answered before Serve is called.
func Listen(ctx context.Context, port int, source Source, options Options) (*Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on port %d of 127.0.0.1: %w", port, err)
	}
	now := time.Now()
	return &Server{
		options: options, listener: listener, token: rand.Text(), source: source,
		state: newState(rand.Text(), now), timelines: newTimelines(maxSpans), clock: clock.RealClock{}, started: now, heartbeat: heartbeat,
	}, nil
}

// URL is the address of the page. It holds a secret: whoever knows it, and is on this
// machine, sees what the user of the kubeconfig may see.
func (s *Server) URL() string {
	return "http://" + s.listener.Addr().String() + "/" + s.token + "/"
}

// Serve answers until ctx ends, which is no error.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	follower := follower{s.source, s.state, s.timelines, s.clock}
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		follower.run(ctx)
	}()
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       writeTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(s.listener)
	cancel()
	<-followed
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the dashboard: %w", err)
}

func (s *Server) handler() http.Handler {
	web, err := fs.Sub(files, "web")
	if err != nil {
		return http.NotFoundHandler() // The name is a valid one, see files.
	}
	const one = "/{group}/{kind}/{namespace}/{name}"
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(web))
	mux.HandleFunc("GET /api/about", s.serveAbout)
	mux.HandleFunc("GET /api/workloads", s.serveWorkloads)
	mux.HandleFunc("GET /api/workloads"+one, s.serveWorkload)
	mux.HandleFunc("GET /api/events"+one, s.serveEvents)
	mux.HandleFunc("GET /api/stream", s.serveStream)
	mux.HandleFunc("POST /api/plan", s.servePlan)
	return guard(s.token, mux)
}

func (s *Server) serveAbout(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.options)
}

func (s *Server) serveWorkloads(w http.ResponseWriter, _ *http.Request) {
	all, _ := s.state.after(position{})
	writeJSON(w, http.StatusOK, all)
}

func (s *Server) serveWorkload(w http.ResponseWriter, r *http.Request) {
	name := keyFrom(r)
	_, data, ok := s.state.get(name)
	if !ok {
		writeError(w, http.StatusNotFound, fmt.Sprintf("%s was not found", name))
		return
	}
	writeJSON(w, http.StatusOK, json.RawMessage(data))
}

func keyFrom(r *http.Request) key {
	return key(r.PathValue("group") + "/" + r.PathValue("kind") + "/" + r.PathValue("namespace") + "/" + r.PathValue("name"))
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // The reader has gone if it fails.
}

// writeError answers with an error for people to read.
func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"error": message})
}
