// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func decode(t *testing.T, m message) []report.Workload {
	t.Helper()
	list := make([]report.Workload, len(m.Workloads))
	for i, data := range m.Workloads {
		NewWithT(t).Expect(json.Unmarshal(data, &list[i])).To(Succeed())
	}
	return list
}

func TestAReaderGetsWhatItDoesNotHave(t *testing.T) {
	g := NewWithT(t)
	s := newState("epoch", start)
	g.Expect(s.replace([]report.Workload{workload("a"), workload("b"), workload("c")}, start)).To(Succeed())

	all, at := s.after(position{})
	g.Expect(all.Full).To(BeTrue())
	g.Expect(names(t, decode(t, all))).To(Equal([]string{"a", "b", "c"}))

	g.Expect(s.replace([]report.Workload{workload("a"), workload("b", "Draining")}, start)).To(Succeed())
	some, next := s.after(at)
	g.Expect(some.Full).To(BeFalse())
	g.Expect(names(t, decode(t, some))).To(Equal([]string{"b"}))
	g.Expect(some.Removed).To(Equal([]key{"apps/Deployment/shop/c"}))
	g.Expect(next).NotTo(Equal(at))

	g.Expect(s.replace([]report.Workload{workload("a"), workload("b", "Draining")}, start)).To(Succeed())
	_, same := s.after(next)
	g.Expect(same).To(Equal(next), "nothing changed")
}

func TestAReaderIsToldAllWhereItsPositionMeansNothing(t *testing.T) {
	s := newState("epoch", start)
	NewWithT(t).Expect(s.replace([]report.Workload{workload("a")}, start)).To(Succeed())
	for name, from := range map[string]position{
		"of another server": {"other", 2}, "of the future": {"epoch", 9}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m, _ := s.after(from)
			g.Expect(m.Full).To(BeTrue())
			g.Expect(m.Workloads).To(HaveLen(1))
		})
	}
}

func TestRemovalsAreForgottenInTime(t *testing.T) {
	g := NewWithT(t)
	s := newState("epoch", start)
	var many []report.Workload
	for i := range maxTombstones + 1 {
		many = append(many, workload(fmt.Sprint("w", i)))
	}
	g.Expect(s.replace(many, start)).To(Succeed())
	_, at := s.after(position{})
	g.Expect(s.replace(nil, start)).To(Succeed())
	g.Expect(s.removed).To(BeEmpty())
	m, at := s.after(at)
	g.Expect(m.Full).To(BeTrue())
	g.Expect(s.replace([]report.Workload{workload("new")}, start)).To(Succeed())
	m, _ = s.after(at)
	g.Expect(m.Full).To(BeFalse())
}

func TestALostClusterIsToldOnceAndLeavesWhatWasRead(t *testing.T) {
	g := NewWithT(t)
	s := newState("epoch", start)
	g.Expect(s.replace([]report.Workload{workload("a")}, start)).To(Succeed())
	_, at := s.after(position{})

	s.fail(errors.New("connection refused"), start.Add(time.Minute))
	m, at := s.after(at)
	g.Expect(m.Connection).To(Equal(connection{State: lost, Error: "connection refused", Since: start.Add(time.Minute)}))
	g.Expect(m.Workloads).To(BeEmpty())

	s.fail(errors.New("connection refused"), start.Add(2*time.Minute))
	_, same := s.after(at)
	g.Expect(same).To(Equal(at), "the same again is no news")

	g.Expect(s.replace([]report.Workload{workload("a")}, start.Add(3*time.Minute))).To(Succeed())
	m, _ = s.after(at)
	g.Expect(m.Connection).To(Equal(connection{State: connected, Since: start.Add(3 * time.Minute)}))
	g.Expect(m.Full).To(BeFalse())
}

func TestPositionsAreReadAsTheyAreWritten(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parsePosition(position{"epoch", 7}.String())).To(Equal(position{"epoch", 7}))
	for _, wrong := range []string{"", "7", "epoch-", "epoch-x", "epoch--1"} {
		g.Expect(parsePosition(wrong)).To(Equal(position{}), wrong)
	}
}
