// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// Serve answers Clients on the Unix socket until the context ends. A socket
// file left by an earlier supervisor is replaced.
func (s *Supervisor) Serve(ctx context.Context, socket string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove old control socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen for control: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return fmt.Errorf("protect control socket: %w", err)
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: clientTimeout}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control: %w", err)
	}
	return nil
}

func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /processes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status()) // The caller may be gone.
	})
	mux.HandleFunc("POST /processes/{name}/stop", func(w http.ResponseWriter, r *http.Request) {
		respond(w, s.Stop(r.Context(), r.PathValue("name")))
	})
	mux.HandleFunc("POST /processes/{name}/start", func(w http.ResponseWriter, r *http.Request) {
		respond(w, s.Start(r.PathValue("name")))
	})
	return mux
}

func respond(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}
