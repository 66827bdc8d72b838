// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What a bandwidth is beside a number of bytes per second.
const (
	// FullBandwidth is as fast as the machine is.
	FullBandwidth = "full"
	// NoBandwidth ends every connection, as if there were no registry.
	NoBandwidth = "off"
)

// SetBandwidth limits how fast a registry, which keeps its files in dir, serves them to all its
// clients together, from their next requests on: bytes per second as a quantity such as 20Mi, or
// FullBandwidth, or NoBandwidth.
func SetBandwidth(dir, bandwidth string) error {
	if _, err := limiterOf(bandwidth); err != nil {
		return err
	}
	if err := os.WriteFile(bandwidthFile(dir), []byte(bandwidth), 0o644); err != nil {
		return fmt.Errorf("limit registry: %w", err)
	}
	return nil
}

func bandwidthFile(dir string) string { return filepath.Join(dir, "bandwidth") }

// chunk is how much is written at a time.
const chunk = 64 << 10

// limiterOf returns what limits a bandwidth: nil for nothing, and one without tokens for no
// bandwidth.
func limiterOf(bandwidth string) (*rate.Limiter, error) {
	switch bandwidth {
	case "", FullBandwidth:
		return nil, nil //nolint:nilnil // nothing limits it
	case NoBandwidth:
		return rate.NewLimiter(0, 0), nil
	}
	quantity, err := resource.ParseQuantity(bandwidth)
	if err != nil || quantity.Value() < 1 {
		return nil, fmt.Errorf("bandwidth is %q: accepted are bytes per second such as 20Mi, %s and %s", bandwidth, FullBandwidth, NoBandwidth)
	}
	return rate.NewLimiter(rate.Limit(quantity.Value()), chunk), nil
}

// limited passes requests on, and its answers as fast as the file of the registry says.
type limited struct {
	served http.Handler
	file   string

	mu        sync.Mutex
	bandwidth string
	limiter   *rate.Limiter
}

func (l *limited) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	limiter, err := l.current()
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case limiter == nil:
		l.served.ServeHTTP(w, req)
	case limiter.Limit() == 0:
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http has no other way to end a connection without an answer
	default:
		l.served.ServeHTTP(&limitedWriter{w, req.Context(), limiter}, req)
	}
}

// current returns the limiter that all requests share.
func (l *limited) current() (*rate.Limiter, error) {
	said, err := os.ReadFile(l.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read bandwidth: %w", err)
	}
	bandwidth := strings.TrimSpace(string(said))
	l.mu.Lock()
	defer l.mu.Unlock()
	if bandwidth == l.bandwidth {
		return l.limiter, nil
	}
	limiter, err := limiterOf(bandwidth)
	if err == nil {
		l.bandwidth, l.limiter = bandwidth, limiter
	}
	return limiter, err
}

// limitedWriter writes as fast as its limiter allows.
type limitedWriter struct {
	http.ResponseWriter

	ctx     context.Context //nolint:containedctx // it is that of the request that is answered
	limiter *rate.Limiter
}

func (w *limitedWriter) Write(data []byte) (int, error) {
	written := 0
	for written < len(data) {
		next := data[written:min(written+chunk, len(data))]
		if err := w.limiter.WaitN(w.ctx, len(next)); err != nil {
			return written, err
		}
		n, err := w.ResponseWriter.Write(next)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
