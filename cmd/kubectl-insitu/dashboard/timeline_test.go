// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const webKey = key("apps/Deployment/shop/web")

// spansOf returns the spans of one pod as "state from-to", in seconds since start.
func spansOf(lines *timelines, pod string) []string {
	var found []string
	spans, _ := lines.spans(webKey)
	for _, span := range spans {
		if span.Pod != pod {
			continue
		}
		text := fmt.Sprintf("%s %v-", span.State, span.From.Sub(start).Seconds())
		if !span.To.IsZero() {
			text += fmt.Sprint(span.To.Sub(start).Seconds())
		}
		found = append(found, text)
	}
	return found
}

func TestTimelineOfAPod(t *testing.T) {
	g := NewWithT(t)
	lines := newTimelines(maxSpans)
	at := func(seconds int, w report.Workload) {
		lines.record([]report.Workload{w}, start.Add(time.Duration(seconds)*time.Second))
	}
	at(0, workload("web", "Waiting"))
	at(5, workload("web", "Waiting"))
	at(10, workload("web", "Draining"))
	done := workload("web", "Settled")
	done.Phase = report.Healthy
	at(20, done)
	g.Expect(spansOf(lines, "web-0")).To(Equal([]string{"Waiting 0-10", "Draining 10-20", "Settled 20-"}))
	g.Expect(spansOf(lines, "")).To(Equal([]string{"Progressing 0-20", "Healthy 20-"}))
}

func TestTimelineKeepsARecreatedPodInItsLane(t *testing.T) {
	g := NewWithT(t)
	lines := newTimelines(maxSpans)
	lines.record([]report.Workload{workload("web", "Settled")}, start)
	again := workload("web", "Settled")
	again.Pods[0].UID = types.UID("another")
	lines.record([]report.Workload{again}, start.Add(time.Second))
	lines.record([]report.Workload{workload("web")}, start.Add(2*time.Second))
	g.Expect(spansOf(lines, "web-0")).To(Equal([]string{"Settled 0-1", "Settled 1-2"}))
}

func TestTimelineTakesTheTimeOfTheReportIfItCanBe(t *testing.T) {
	for name, c := range map[string]struct {
		since int
		want  []string
	}{
		"between":        {7, []string{"Waiting 0-7", "Draining 7-"}},
		"before":         {-5, []string{"Waiting 0-10", "Draining 10-"}},
		"in the future":  {99, []string{"Waiting 0-10", "Draining 10-"}},
		"as it was seen": {10, []string{"Waiting 0-10", "Draining 10-"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines := newTimelines(maxSpans)
			lines.record([]report.Workload{workload("web", "Waiting")}, start)
			next := workload("web", "Draining")
			next.Pods[0].Since = metav1.NewTime(start.Add(time.Duration(c.since) * time.Second))
			lines.record([]report.Workload{next}, start.Add(10*time.Second))
			NewWithT(t).Expect(spansOf(lines, "web-0")).To(Equal(c.want))
		})
	}
}

func TestTimelineIsBoundedAndKeepsThePresent(t *testing.T) {
	g := NewWithT(t)
	lines := newTimelines(10)
	for i := range 100 {
		lines.record([]report.Workload{workload("web", "Settled", []string{"Draining", "Restarting"}[i%2])}, start.Add(time.Duration(i)*time.Second))
	}
	spans, forgotten := lines.spans(webKey)
	g.Expect(spans).To(HaveLen(10))
	g.Expect(forgotten).To(Equal(100 + 2 - 10))
	g.Expect(spansOf(lines, "web-0")).To(Equal([]string{"Settled 0-"}), "older than all others, and still true")
	g.Expect(spansOf(lines, "web-1")[7]).To(Equal("Restarting 99-"))
}

func TestTimelinesOfWorkloadsThatAreGoneAreForgotten(t *testing.T) {
	g := NewWithT(t)
	lines := newTimelines(maxSpans)
	lines.record([]report.Workload{workload("web", "Settled")}, start)
	lines.record(nil, start)
	g.Expect(lines.lines).To(BeEmpty())
	spans, _ := lines.spans(webKey)
	g.Expect(spans).To(BeEmpty())

	lines.record([]report.Workload{workload("web", "Settled")}, start)
	namesake := workload("web", "Settled")
	namesake.UID = "another"
	lines.record([]report.Workload{namesake}, start.Add(time.Second))
	g.Expect(spansOf(lines, "web-0")).To(Equal([]string{"Settled 1-"}))
}
