// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
)

// recorder is an http.ResponseWriter that holds the answer back, so that
// something can still go wrong before a client sees success.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder {
	return &recorder{header: http.Header{}, status: http.StatusOK}
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recorder) sendTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	// The client is gone if this fails: there is no client left to tell.
	_, _ = w.Write(r.body.Bytes())
}

// put pushes a manifest to a registry without a network in between.
func put(served http.Handler, key manifestKey, m manifest) *recorder {
	answer := newRecorder()
	served.ServeHTTP(answer, &http.Request{
		Method: http.MethodPut,
		URL:    &url.URL{Path: "/v2/" + key.repository + "/manifests/" + key.target},
		Header: http.Header{"Content-Type": []string{m.ContentType}},
		Body:   readCloser{bytes.NewReader(m.Body)},
	})
	return answer
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
