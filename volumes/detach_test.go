// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
)

const sentAway = `{"size":"2Gi","sizeTimestamp":"2026-11-01T12:00:00Z","inUseTimestamp":"2026-11-01T12:00:00Z","detachTimestamp":"2026-11-01T12:00:00Z"}`

func TestIsAway(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, "1Gi", "")
	g.Expect(IsAway(l.Claim, start)).To(BeFalse(), "its pod was never sent away")
	noted(sentAway)(l)
	g.Expect(IsAway(l.Claim, start.Add(2*detachPeriod-time.Second))).To(BeTrue())
	g.Expect(IsAway(l.Claim, start.Add(2*detachPeriod))).To(BeFalse())
}

// TestGrewDetached: siblings follow when it has helped, and not before.
func TestGrewDetached(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, "1Gi", "")
	grew := func(record, capacity string) time.Time {
		noted(record)(l)
		return GrewDetached(RecordOf(l.Claim), resource.MustParse(capacity))
	}
	g.Expect(grew(sentAway, "1Gi")).To(BeZero(), "it has not grown")
	g.Expect(grew(sentAway, "2Gi")).To(BeTemporally("==", start))
	g.Expect(grew(sentAway, "3Gi")).To(BeTemporally("==", start))
	g.Expect(grew(`{"size":"2Gi","inUseTimestamp":"2026-11-01T12:00:00Z"}`, "2Gi")).To(BeZero(), "its pod was not sent away")
	g.Expect(grew(`{"size":"2Gi","detachTimestamp":"2026-11-01T12:00:00Z"}`, "2Gi")).To(BeZero(), "it was the node that needed it")
	g.Expect(grew(`{}`, "2Gi")).To(BeZero())
}
