// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestFlagsWinOverEnvironment(t *testing.T) {
	g := NewWithT(t)
	env := map[string]string{"SLEEPER_EXIT_AFTER": "5s", "SLEEPER_EXIT_CODE": "3", "SLEEPER_LISTEN": ":9090"}
	opts, err := parse([]string{"-exit-code=4", "-ignore-term=1m"}, func(name string) string { return env[name] })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(opts).To(Equal(options{listen: ":9090", exitAfter: 5 * time.Second, exitCode: 4, ignoreTerm: time.Minute}))
}

func TestWrongEnvironmentIsNamed(t *testing.T) {
	g := NewWithT(t)
	_, err := parse(nil, func(name string) string {
		return map[string]string{"SLEEPER_READY_AFTER": "soon"}[name]
	})
	g.Expect(err).To(MatchError(ContainSubstring(`read SLEEPER_READY_AFTER="soon"`)))
}

func TestEndsByItself(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(options{exitAfter: time.Millisecond, exitCode: 7})).To(Equal(7))
}

func TestServesVersionAndReadiness(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("COLOR", "blue")
	get := func(handler http.Handler, path string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, strings.NewReader("")))
		return answer
	}
	g.Expect(get(handler(time.Now().Add(time.Hour), &load{}), "/ready").Code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(get(handler(time.Now(), &load{}), "/ready").Code).To(Equal(http.StatusOK))

	var answer struct {
		Version string
		Env     map[string]string
	}
	g.Expect(json.Unmarshal(get(handler(time.Now(), &load{}), "/").Body.Bytes(), &answer)).To(Succeed())
	g.Expect(answer.Version).To(Equal(version))
	g.Expect(answer.Env).To(HaveKeyWithValue("COLOR", "blue"))
}

func TestLoadCountsWhatBecomesOfRequests(t *testing.T) {
	g := NewWithT(t)
	var fails atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	requests := &load{}
	requests.count(ask(server.Client(), server.URL))
	fails.Store(true)
	requests.count(ask(server.Client(), server.URL))

	answer := httptest.NewRecorder()
	handler(time.Now(), requests).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/load", http.NoBody))
	g.Expect(answer.Body.String()).To(ContainSubstring(`"failed":1`))
	g.Expect(answer.Body.String()).To(ContainSubstring(`"ok":1`))
	g.Expect(answer.Body.String()).To(ContainSubstring("answer 502 Bad Gateway"))
}

func TestBurnUsesTheCPU(t *testing.T) {
	g := NewWithT(t)
	get := func(path string) int {
		answer := httptest.NewRecorder()
		handler(time.Now(), &load{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return answer.Code
	}
	before := cpuTime()
	g.Expect(get("/burn?for=50ms")).To(Equal(http.StatusOK))
	g.Expect(cpuTime() - before).To(BeNumerically(">=", 50*time.Millisecond))
	g.Expect(get("/burn?for=long")).To(Equal(http.StatusBadRequest))
}

func TestBurnEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&burner{}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/burn?for=24h", http.NoBody))
}
