// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package writes counts what is written to the API server.
package writes

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Values of the label result.
const (
	resultDone            = "Done"
	resultConflict        = "Conflict"
	resultNotFound        = "NotFound"
	resultTooManyRequests = "TooManyRequests"
	resultRefused         = "Refused"
	resultError           = "Error"
)

// Metrics count writes where all of them pass: on their way to the API server, each
// attempt, whoever made it. They are safe for concurrent use.
type Metrics struct {
	writes, dryRuns *prometheus.CounterVec
	requests        request.RequestInfoFactory
}

// NewMetrics returns metrics that have counted nothing.
func NewMetrics() *Metrics {
	labels := []string{"resource", "subresource", "verb", "result"}
	return &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_writes_total",
			Help: "Attempts to write to the API server, by result. They include events, the lease of the leader and its heartbeat.",
		}, labels),
		dryRuns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "insitu_dry_runs_total",
			Help: "Dry runs of writes, by the answer of the API server.",
		}, labels),
		requests: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
	}
}

// Collectors returns what is to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.writes, m.dryRuns}
}

// Wrap returns a transport that counts the writes that pass it.
func (m *Metrics) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{m, next}
}

type transport struct {
	*Metrics
	next http.RoundTripper
}

// RoundTrip sends a request on, and counts it if it is a write.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		t.count(request, response, err)
	}
	return response, err
}

// WrappedRoundTripper returns the transport that this one sends requests on to.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (m *Metrics) count(sent *http.Request, response *http.Response, err error) {
	info, parseErr := m.requests.NewRequestInfo(sent)
	if parseErr != nil || !info.IsResourceRequest || isQuestion(info.APIGroup) {
		return
	}
	counter := m.writes
	if sent.URL.Query().Has("dryRun") {
		counter = m.dryRuns
	}
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	counter.WithLabelValues(resource.String(), info.Subresource, info.Verb, resultOf(response, err)).Inc()
}

// isQuestion reports whether what is created in a group is a question, and nothing is
// written. Each request for metrics asks two.
func isQuestion(group string) bool {
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}

func resultOf(response *http.Response, err error) string {
	switch {
	case err != nil || response.StatusCode >= http.StatusInternalServerError:
		return resultError
	case response.StatusCode == http.StatusConflict:
		return resultConflict
	case response.StatusCode == http.StatusNotFound:
		return resultNotFound
	case response.StatusCode == http.StatusTooManyRequests:
		return resultTooManyRequests
	case response.StatusCode >= http.StatusBadRequest:
		return resultRefused
	default:
		return resultDone
	}
}
