// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/insitu-dev/insitu/test/lab/images"
)

// SetBandwidth limits how fast the lab's registry serves images, see [images.SetBandwidth].
func (l *Lab) SetBandwidth(bandwidth string) error {
	return images.SetBandwidth(l.state(registry), bandwidth)
}

// ServeRegistry serves the lab's images until the context ends.
func (l *Lab) ServeRegistry(ctx context.Context) error {
	handler, err := images.NewRegistry(l.state(registry))
	if err != nil {
		return err
	}
	address := fmt.Sprintf("%s:%d", l.bind(), l.ports().Registry)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve images: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve images: %w", err)
	}
	return nil
}
