// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

// follow runs a follower in a bubble, where time passes once everybody waits.
func follow(t *testing.T, source *fakeSource, check func(g Gomega, s *state)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source.changed = make(chan struct{}, 1) // A channel belongs to its bubble.
		f := follower{source, newState("epoch", time.Now()), newTimelines(maxSpans), clock.RealClock{}}
		go f.run(t.Context())
		synctest.Wait()
		check(NewWithT(t), f.state)
	})
}

func TestFollowerReadsAfterAChangeAndNotTooOften(t *testing.T) {
	source := newFakeSource(workload("a"))
	follow(t, source, func(g Gomega, s *state) {
		_, at := s.after(position{})
		source.set(func() { source.workloads = append(source.workloads, workload("b")) })
		synctest.Wait()
		_, same := s.after(at)
		g.Expect(same).To(Equal(at), "the last list was just read")
		time.Sleep(minInterval)
		synctest.Wait()
		m, _ := s.after(at)
		g.Expect(m.Workloads).To(HaveLen(1))
	})
}

func TestFollowerRecovers(t *testing.T) {
	source := newFakeSource(workload("a"))
	source.err = errors.New("connection refused")
	follow(t, source, func(g Gomega, s *state) {
		m, at := s.after(position{})
		g.Expect(m.Connection.State).To(Equal(lost))
		source.mu.Lock()
		source.err = nil
		source.mu.Unlock()
		time.Sleep(retryInterval)
		synctest.Wait()
		m, _ = s.after(at)
		g.Expect(m.Connection.State).To(Equal(connected))
		g.Expect(m.Workloads).To(HaveLen(1))
	})
}

func TestFollowerReadsWithoutAChangeOnceInAWhile(t *testing.T) {
	source := newFakeSource()
	follow(t, source, func(g Gomega, s *state) {
		source.mu.Lock()
		source.workloads = append(source.workloads, workload("late"))
		source.mu.Unlock()
		time.Sleep(relistInterval)
		synctest.Wait()
		m, _ := s.after(position{})
		g.Expect(m.Workloads).To(HaveLen(1))
	})
}
