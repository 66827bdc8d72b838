// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlansStayAsTheyWereMade(t *testing.T) {
	g := NewWithT(t)
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	plan := Plan{
		Moves:    []Move{{Pod: pod("a")}, {Pod: pod("b")}, {Pod: pod("c")}},
		Blockers: []Blocker{{Pod: pod("d"), State: Restarting}, {Pod: pod("e"), State: Waiting}},
		Recheck:  after(60),
	}
	plan.Blockers = append(make([]Blocker, 0, 10), plan.Blockers...) // room for others to write into
	names := func(blockers []Blocker) []string {
		var all []string
		for _, b := range blockers {
			all = append(all, b.Pod.Name+" "+string(b.State)+" "+b.Reason+b.Message)
		}
		return all
	}
	bars := map[string]*Bar{"a": {Reason: "Asked: ", Message: "it waits", Until: after(20)}, "b": {Until: after(30)}}

	left := plan.Without(func(m Move) *Bar { return bars[m.Pod.Name] })
	g.Expect(left.Moves).To(HaveLen(1))
	g.Expect(left.Moves[0].Pod.Name).To(Equal("c"))
	g.Expect(left.Recheck).To(Equal(after(20)))
	g.Expect(names(left.Blockers)).To(Equal([]string{"d Restarting ", "e Waiting ", "a Waiting Asked: it waits"}), "something else says why b waits")

	more := plan.With(Blocker{Pod: pod("f"), State: Waiting}, Blocker{Pod: pod("g"), State: Stuck})
	g.Expect(names(more.Blockers)).To(Equal([]string{"g Stuck ", "d Restarting ", "e Waiting ", "f Waiting "}), "the worst first")
	g.Expect(names(left.With().Blockers)).To(Equal(names(left.Blockers)), "what was made of a plan before stays, too")

	g.Expect(plan.Moves).To(HaveLen(3))
	g.Expect(names(plan.Blockers)).To(Equal([]string{"d Restarting ", "e Waiting "}))
	g.Expect(plan.Recheck).To(Equal(after(60)))

	unbarred := plan.Without(func(Move) *Bar { return nil })
	g.Expect(unbarred.Recheck).To(Equal(after(60)))
	g.Expect(Plan{Moves: plan.Moves[:1]}.Without(func(Move) *Bar { return &Bar{} }).Recheck).To(Equal(time.Time{}), "an event tells")
}
