// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

// membersOf returns members in the order of their letters: "o" old, "n" at the
// update revision; then "-" not available, "~" the same, but it serves, "y" the same until it may be changed, "!" broken, "s" about to be taken out of
// service, "r" also, for a change in place, "d" asked to be deleted. They are named
// a, b, c.
func membersOf(how ...string) []*member {
	var members []*member
	for i, what := range how {
		m := memberNamed(fmt.Sprintf("%c", 'a'+i))
		if what[0] == 'o' {
			m.turn = workload.Resting
		}
		for _, flag := range what[1:] {
			switch flag {
			case '-':
				isUnready(m)
			case '~':
				m.available = false
			case 'y':
				m.available, m.yields = false, true
			case '!':
				isUnready(m)
				m.broken = true
			case 's':
				m.surges = true
			case 'r':
				m.surges, m.returns = true, true
			case 'd':
				m.asked, m.surges = true, true
			}
		}
		members = append(members, m)
	}
	return members
}

func TestPlanScale(t *testing.T) {
	for name, tc := range map[string]struct {
		facts                         scaleFacts
		pods                          []string
		atUpdate, atCurrent, withheld int
		remove, waiting               []string
	}{
		"nothing to do":          {facts: scaleFacts{replicas: 2}, pods: []string{"n", "n"}},
		"the first pods":         {facts: scaleFacts{replicas: 3}, atUpdate: 3},
		"the partition is empty": {facts: scaleFacts{replicas: 4, partition: 3}, pods: []string{"n"}, atCurrent: 3},
		"the partition is full":  {facts: scaleFacts{replicas: 4, partition: 2}, pods: []string{"o", "o"}, atUpdate: 2},
		"one place is left in each": {
			facts: scaleFacts{replicas: 4, partition: 2}, pods: []string{"o", "n"}, atUpdate: 1, atCurrent: 1,
		},
		"the limit counts what starts": {
			facts: scaleFacts{replicas: 6, limit: 3}, pods: []string{"n-", "n!", "n"}, atUpdate: 2, withheld: 1,
		},
		"the limit is used up":            {facts: scaleFacts{replicas: 4, limit: 1}, pods: []string{"n-"}, withheld: 3},
		"and not what waits for another":  {facts: scaleFacts{replicas: 4, limit: 1, away: 2}, pods: []string{"n"}, atUpdate: 3},
		"but not what waits for a budget": {facts: scaleFacts{replicas: 4, limit: 1}, pods: []string{"ny", "o"}, atUpdate: 1, withheld: 1},
		"surge for what is replaced":      {facts: scaleFacts{replicas: 3, surge: 2}, pods: []string{"os", "os", "os"}, atUpdate: 2},
		"no more than is replaced":        {facts: scaleFacts{replicas: 3, surge: 2}, pods: []string{"os", "n", "n"}, atUpdate: 1},
		"no surge while it is paused":     {facts: scaleFacts{replicas: 3, surge: 2, stopped: true}, pods: []string{"os", "os", "os"}},
		"surge for a kept pod that a user asks to replace": {
			facts: scaleFacts{replicas: 3, surge: 1, partition: 3}, pods: []string{"o", "od", "o"}, atCurrent: 1,
		},
		"surge and a missing pod": {
			facts: scaleFacts{replicas: 4, surge: 1, partition: 1}, pods: []string{"os", "os", "o"}, atUpdate: 2,
		},
		"a pod between batches keeps its place": {
			facts: scaleFacts{replicas: 2, surge: 1, partition: 1}, pods: []string{"o", "nr"}, atCurrent: 1,
		},
		"without a partition nothing stays old": {facts: scaleFacts{replicas: 2, surge: 1}, pods: []string{"n", "nr"}, atUpdate: 1},
		"what replaces an updated pod takes its place": {
			facts: scaleFacts{replicas: 2, surge: 1, partition: 1}, pods: []string{"o", "ns"}, atUpdate: 1,
		},
		"a stand-in goes, not the updated pod": {
			facts: scaleFacts{replicas: 2, partition: 1, maxUnavailable: 1}, pods: []string{"o", "n", "o"}, remove: []string{"a"},
		},
		"surplus goes":                              {facts: scaleFacts{replicas: 1, maxUnavailable: 1}, pods: []string{"n", "n", "n"}, remove: []string{"a", "b"}},
		"not below the budget":                      {facts: scaleFacts{replicas: 2, maxUnavailable: 0}, pods: []string{"nd", "n-", "n"}, waiting: []string{"a"}},
		"what is unavailable goes freely":           {facts: scaleFacts{replicas: 2, maxUnavailable: 0}, pods: []string{"n", "n-", "n"}, remove: []string{"b"}},
		"not what serves while it is changed":       {facts: scaleFacts{replicas: 2, maxUnavailable: 0}, pods: []string{"n", "n~", "n-"}, remove: []string{"c"}},
		"what serves, where others are unavailable": {facts: scaleFacts{replicas: 2, maxUnavailable: 0}, pods: []string{"n", "n~", "n~"}, waiting: []string{"b"}},
		"what serves, where enough others do":       {facts: scaleFacts{replicas: 2, maxUnavailable: 0}, pods: []string{"n", "n~", "n"}, remove: []string{"b"}},
		"old surplus goes first":                    {facts: scaleFacts{replicas: 2, maxUnavailable: 1}, pods: []string{"n", "o", "n"}, remove: []string{"b"}},
		"but not what the partition keeps":          {facts: scaleFacts{replicas: 2, maxUnavailable: 1, partition: 1}, pods: []string{"n", "o", "n"}, remove: []string{"a"}},
		"surge pods stay while they are of use":     {facts: scaleFacts{replicas: 2, surge: 1, maxUnavailable: 1}, pods: []string{"os", "o", "n"}},
		"broken pods that are kept are of no use":   {facts: scaleFacts{replicas: 1, surge: 1}, pods: []string{"os", "o!"}, remove: []string{"b"}},
		"and go when they take the last place":      {facts: scaleFacts{replicas: 2, surge: 2}, pods: []string{"os", "os", "o!", "n"}, remove: []string{"c"}},
		"but stay while there is another":           {facts: scaleFacts{replicas: 2, surge: 2}, pods: []string{"os", "os", "o!"}, atUpdate: 1},
		"what is asked for is no surplus by itself": {facts: scaleFacts{replicas: 2, maxUnavailable: 1}, pods: []string{"nd", "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := tc.facts
			f.members = membersOf(tc.pods...)
			if f.limit == 0 {
				f.limit = -1
			}
			plan := planScale(f)
			g.Expect([]int{plan.atUpdate, plan.atCurrent, plan.withheld}).To(
				Equal([]int{tc.atUpdate, tc.atCurrent, tc.withheld}), "at the update revision, at the current one, withheld")
			g.Expect(namesOf(plan.remove)).To(ConsistOf(tc.remove), "removed")
			g.Expect(namesOf(plan.waiting)).To(ConsistOf(tc.waiting), "waiting")
		})
	}
}

// A typo in replicas asks for two billion pods: the manager holds only those that it can
// create now.
func TestPodsWithoutNumber(t *testing.T) {
	g := NewWithT(t)
	members := membersOf("o", "n")
	s := &scope{set: &appsv1beta1.CloneSet{}, scaled: planScale(scaleFacts{members: members, replicas: math.MaxInt32, partition: 3, limit: -1})}
	g.Expect([]int{s.scaled.atUpdate, s.scaled.atCurrent}).To(Equal([]int{math.MaxInt32 - 4, 2}))
	s.Revisions.Update, s.Revisions.Current = &history.Revision{}, &history.Revision{}
	g.Expect(s.revisionsOfNew(1)).To(HaveLen(workload.MaxCreations))

	for _, tc := range []struct{ atUpdate, atCurrent, away, update, current int }{
		{2, 1, 0, 2, 1}, {2, 1, 1, 1, 1}, {2, 1, 2, 0, 1}, {2, 2, 3, 0, 1}, {0, 1, 4, 0, 0}, {500, 500, 0, 500, 12},
	} {
		s.scaled.atUpdate, s.scaled.atCurrent = tc.atUpdate, tc.atCurrent
		made := s.revisionsOfNew(tc.away)
		atUpdate := slices.DeleteFunc(slices.Clone(made), func(r *history.Revision) bool { return r != s.Revisions.Update })
		g.Expect([]int{len(atUpdate), len(made) - len(atUpdate)}).To(Equal([]int{tc.update, tc.current}), "%+v", tc)
	}
}

// Pods that are being made at the update revision take places that others had: with them, no
// more than the partition leaves room for are updated.
func TestPodsThatAreMadeHaveTheirPlaces(t *testing.T) {
	const replicas, partition = 3, 1
	g := NewWithT(t)
	s, members := scopeOf(t, replicas, partition), membersOf("o", "o", "o")
	for made := range 3 {
		s.scaled.atUpdate = made
		free := 0
		for _, pod := range s.workload(members).Pods {
			if !pod.Held {
				free++
			}
		}
		g.Expect(made+free).To(Equal(replicas-partition), "%d made", made)
	}
}

// What comes in the place of a pod that is asked for is made where there is room. Nothing does
// where there are enough without it; what is only being made may be refused yet.
func TestWhatComesInThePlaceOfPodsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		pods      []string
		partition int32
		made      int
		back      []string
	}{
		"no partition":               {pods: []string{"o", "od", "od"}, back: []string{"sample-2", "sample-2"}},
		"room at one revision each":  {pods: []string{"o", "od", "od"}, partition: 2, back: []string{"sample-2", "sample-1"}},
		"room at the current one":    {pods: []string{"n", "od", "od"}, partition: 2, back: []string{"sample-1", "sample-1"}},
		"the new one is there":       {pods: []string{"o", "o", "n", "od"}, back: []string{""}},
		"one of two is there":        {pods: []string{"o", "n", "od", "od"}, back: []string{"sample-2", ""}},
		"the new one is to be made":  {pods: []string{"o", "o", "od"}, made: 1, back: []string{"sample-2"}},
		"more are made than replace": {pods: []string{"o", "od", "od"}, made: 2, back: []string{"sample-2", "sample-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOf(t, 3, tc.partition)
			s.scaled.atUpdate = tc.made
			var back []string
			w := s.workload(membersOf(tc.pods...))
			for i, facts := range w.Pods {
				if tc.pods[i][len(tc.pods[i])-1] != 'd' {
					continue
				}
				name := ""
				if revision := w.ComesBackAt(facts); revision != nil {
					name = revision.Name
				}
				back = append(back, name)
			}
			NewWithT(t).Expect(back).To(Equal(tc.back))
		})
	}
}

// scopeOf returns the scope of a set with two revisions: sample-1 is the current one, sample-2
// that of the update.
func scopeOf(t *testing.T, replicas, partition int32) *scope {
	t.Helper()
	s := &scope{set: builders.CloneSet("default", "sample", "nginx:alpine").Replicas(replicas).Partition(partition).Build()}
	var objects []appsv1.ControllerRevision
	for _, name := range []string{"sample-1", "sample-2"} {
		objects = append(objects, appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}`)},
		})
	}
	revisions, err := history.NewKeeper(nil).Read(objects)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s.Revisions.Current, s.Revisions.Update = revisions.Get("sample-1"), revisions.Get("sample-2")
	return s
}
