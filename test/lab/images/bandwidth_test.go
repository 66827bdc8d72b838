// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// answerOf asks for what is at an address.
func answerOf(t *testing.T, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

func TestBandwidth(t *testing.T) {
	dir, text := t.TempDir(), strings.Repeat("x", 5*chunk)
	server := httptest.NewServer(&limited{file: bandwidthFile(dir), served: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
	})})
	t.Cleanup(server.Close)
	get := func() (string, time.Duration, error) {
		began := time.Now()
		answer, err := answerOf(t, server.URL)
		if err != nil {
			return "", 0, err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), time.Since(began), err
	}
	g := NewWithT(t)
	// isLimited reports whether an answer took as long as it does with ten chunks a second, of which
	// the first one of five is free.
	isLimited := func() bool {
		t.Helper()
		body, took, err := get()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(body).To(Equal(text))
		return took >= 400*time.Millisecond
	}
	g.Expect(SetBandwidth(dir, "640Ki")).To(Succeed())
	g.Expect(isLimited()).To(BeTrue())
	g.Expect(SetBandwidth(dir, NoBandwidth)).To(Succeed())
	_, _, err := get()
	g.Expect(err).To(HaveOccurred())
	g.Expect(SetBandwidth(dir, FullBandwidth)).To(Succeed())
	g.Eventually(isLimited).Should(BeFalse()) // a machine may be slow once
	for _, wrong := range []string{"0", "-1", "fast", "20 Mi"} {
		g.Expect(SetBandwidth(dir, wrong)).To(MatchError(ContainSubstring(wrong)))
	}
}

// What a test has left does not outlive the lab.
func TestBandwidthIsFullAfterAStart(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(SetBandwidth(dir, NoBandwidth)).To(Succeed())
	url, _ := serve(t, dir)
	answer, err := answerOf(t, url+"/v2/")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())
}
