// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// longestFreeze bounds the time in which writers wait for a copy to be made.
const longestFreeze = 30 * time.Second

// ServeFreezes lets callers of FreezeOver stop writing to the node's volumes,
// on the Unix socket and until the context ends. It goes on at the latest when
// the caller is gone.
func (n *Node) ServeFreezes(ctx context.Context, socket string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /freeze/{volume}", n.serveFreeze)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: longestFreeze}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve freezes: %w", err)
	}
	return nil
}

// serveFreeze answers once no process can write, and thaws when the caller hangs up.
func (n *Node) serveFreeze(w http.ResponseWriter, r *http.Request) {
	thaw, err := n.Freeze(r.Context(), n.name, r.PathValue("volume"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer thaw()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // The caller may be gone.
	select {
	case <-r.Context().Done():
	case <-time.After(longestFreeze):
	}
}

// Freeze is a Freezer for volumes of this node.
func (n *Node) Freeze(_ context.Context, _, id string) (func(), error) {
	volume, err := n.store.volumes().read(id)
	if err != nil {
		return nil, err
	}
	if !n.has(volume) {
		return nil, fmt.Errorf("volume %s is not on %s", id, n.name)
	}
	if err := freeze(volume.Staged.Path); err != nil {
		return nil, err
	}
	// An error means that it is gone, or thawed by another process.
	return func() { _ = thaw(volume.Staged.Path) }, nil
}

// FreezeOver returns a Freezer that asks the nodes, which answer on the sockets.
func FreezeOver(socket func(node string) string) Freezer {
	return func(ctx context.Context, node, volume string) (func(), error) {
		transport := &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket(node))
			},
			DisableKeepAlives: true,
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/freeze/"+volume, nil)
		if err != nil {
			return nil, err
		}
		response, err := transport.RoundTrip(request) //nolint:bodyclose // Closing it thaws.
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", node, err)
		}
		if response.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
			return nil, errors.Join(errors.New(strings.TrimSpace(string(text))), response.Body.Close())
		}
		return func() { _ = response.Body.Close() }, nil
	}
}
