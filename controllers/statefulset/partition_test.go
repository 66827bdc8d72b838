// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

// What there can be at an ordinal: nothing, or a pod whose first word is its
// revision. old is the current one, new the update revision, other one between.
var kinds = []string{
	"", "old", "old unready", "old marked", "old going", "old lost", "other", "other going", "other lost", "new", "new going", "new lost",
}

func podOfKind(kind string, ordinal int) *member {
	revision, condition, _ := strings.Cut(kind, " ")
	b := builders.Pod(podName("sample", ordinal), revision, "nginx:alpine").Gated(corev1.ConditionTrue, builders.Start)
	switch condition {
	case "unready":
		b.Ready(false, builders.Start)
	case "marked":
		b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, builders.Start).Ready(false, builders.Start)
	case "going":
		b.Deleted(builders.Start)
	case "lost":
		b.Deleted(builders.Start.Add(-time.Hour))
	default: // its revision is all there is to say, or it has a label
		if key, value, labeled := strings.Cut(condition, "="); labeled {
			b.Label(key, value)
		}
	}
	pod := b.Build()
	return &member{Pod: pod, ordinal: ordinal, healthy: workload.IsHealthy(pod, nil, 0, builders.Start)}
}

// updateOf returns a set in the middle of its update from old to new. What there
// is at its ordinals is given from 0 up.
func updateOf(t *testing.T, partition int32, strategy *appsv1beta1.UnorderedUpdateStrategy, at ...string) *scope {
	t.Helper()
	set := builders.StatefulSet("default", "sample", "nginx:alpine").Replicas(int32(len(at))).Partition(partition).Build()
	set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = strategy
	s := newScope(set, builders.Start)
	s.Revisions.Current, s.Revisions.Update = revisionOf(t, "old", set.Spec.Template), revisionOf(t, "new", set.Spec.Template)
	for i, kind := range at {
		if kind != "" {
			s.members = append(s.members, podOfKind(kind, i))
		}
	}
	s.ordinals = s.ordinalsInView()
	return s
}

// byTier updates pods of tier edge before those of tier core, and these before
// the rest.
func byTier() *appsv1beta1.UnorderedUpdateStrategy {
	terms := []appsv1beta1.UpdatePriorityWeightTerm{}
	for tier, weight := range map[string]int32{"edge": 50, "core": 10} {
		terms = append(terms, appsv1beta1.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
		})
	}
	return &appsv1beta1.UnorderedUpdateStrategy{PriorityStrategy: &appsv1beta1.UpdatePriorityStrategy{WeightPriority: terms}}
}

func TestHeldByNumber(t *testing.T) {
	unordered := &appsv1beta1.UnorderedUpdateStrategy{}
	for name, tc := range map[string]struct {
		partition int32
		strategy  *appsv1beta1.UnorderedUpdateStrategy
		at        []string
		held      []int
	}{
		"nothing":                        {at: []string{"old", "old", "old"}},
		"all":                            {partition: 3, at: []string{"old", "old", "old"}, held: []int{0, 1, 2}},
		"more than there are":            {partition: 7, at: []string{"old", "", "new"}, held: []int{0, 1}},
		"the highest ordinals go":        {partition: 2, at: []string{"old", "old", "old", "old"}, held: []int{0, 1}},
		"those that are not available":   {partition: 2, at: []string{"old unready", "old", "old"}, held: []int{1, 2}},
		"the highest priorities":         {partition: 2, strategy: byTier(), at: []string{"old tier=core", "old tier=edge", "old", "old tier=core"}, held: []int{0, 2}},
		"updated ones count":             {partition: 2, at: []string{"new", "old", "old"}, held: []int{1, 2}},
		"updated ones that are going":    {partition: 2, at: []string{"new going", "old", "old"}, held: []int{1, 2}},
		"updated ones that are lost":     {partition: 2, at: []string{"new lost", "old", "old"}, held: []int{1, 2}},
		"nothing goes back":              {partition: 2, at: []string{"new", "new", "old"}, held: []int{2}},
		"a vacant one before old ones":   {partition: 2, at: []string{"", "old", "old"}, held: []int{1, 2}},
		"of vacant ones the highest":     {partition: 2, at: []string{"", "", "old"}, held: []int{0, 2}},
		"a vacant one stays old":         {partition: 2, at: []string{"", "old", "new"}, held: []int{0, 1}},
		"what is going is vacant soon":   {partition: 2, at: []string{"old going", "old", "old"}, held: []int{1, 2}},
		"what is lost is waited for not": {partition: 2, at: []string{"old lost", "old", "old"}, held: []int{0, 1}},
		"what has begun goes on":         {partition: 2, strategy: byTier(), at: []string{"old marked", "old tier=edge", ""}, held: []int{1, 2}},
		"what is between goes first":     {partition: 2, strategy: byTier(), at: []string{"other", "old tier=edge", "old marked"}, held: []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.strategy == nil {
				tc.strategy = unordered
			}
			held := updateOf(t, tc.partition, tc.strategy, tc.at...).heldOrdinals()
			NewWithT(t).Expect(slices.Sorted(maps.Keys(held))).To(Equal(tc.held))
		})
	}
}

// Whatever is there: the pods at the update revision and those that may come to
// it are as many as the update may have, unless more are at it already.
func TestHeldByNumberKeepsTheNumber(t *testing.T) {
	for _, a := range kinds {
		for _, b := range kinds {
			for _, c := range kinds {
				for partition := range int32(5) {
					s := updateOf(t, partition, byTier(), a, b, c)
					held := s.heldOrdinals()
					are := 0
					for _, m := range s.members {
						if m.Labels[appsv1beta1.ControllerRevisionHashLabel] == "new" {
							are++
							NewWithT(t).Expect(held.Has(m.ordinal)).To(BeFalse(), "%q %q %q: %d is updated and held", a, b, c, m.ordinal)
						}
					}
					NewWithT(t).Expect(3-held.Len()).To(Equal(max(are, 3-int(partition), 0)), "%q %q %q, partition %d: held %v", a, b, c, partition, held)
				}
			}
		}
	}
}

// A canary that is taken back: the pods at the update revision are those that
// never left it, and there is no older one to stay at.
func TestHeldByNumberHoldsNothingBackFromTheCurrentRevision(t *testing.T) {
	s := updateOf(t, 2, byTier(), "old", "old", "other")
	s.Revisions.Update = s.Revisions.Current
	NewWithT(t).Expect(s.heldOrdinals()).To(BeEmpty())
}

// want asks for so many pods, of which none exists.
func (s *scope) want(replicas int) {
	s.set.Spec.Replicas = ptr.To(int32(replicas)) //nolint:gosec // a few
	s.replicas, s.wanted, s.members = replicas, s.set.GetWantedOrdinals(), nil
	s.ordinals = s.ordinalsInView()
}

func TestHeldByOrdinal(t *testing.T) {
	g := NewWithT(t)
	s := updateOf(t, 2, nil, "new", "old", "", "old")
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(0, 1)), "also one that was updated before the partition was raised")

	s.set.Spec.Ordinals, s.set.Spec.ReserveOrdinals = &appsv1beta1.StatefulSetOrdinals{Start: 3}, []intstr.IntOrString{intstr.FromInt32(4)}
	s.want(3)
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(3, 5)), "the partition counts pods, from the first ordinal")
	s.want(1)
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(3)), "the partition is more than there are pods")
	s.want(3)

	s.set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = byTier()
	s.set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(3, 5)), "none is there: of missing pods, those with the lowest ordinals stay old")
	s.members = []*member{podOfKind("old", 3), podOfKind("old tier=edge", 5), podOfKind("old tier=core", 6)}
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(3, 6)), "an order of one's own, while pods are created one after the other")
}

// A typo in replicas asks for two billion pods: the manager looks at the pods that exist,
// and at as many others as it can create now.
func TestOrdinalsInView(t *testing.T) {
	g := NewWithT(t)
	s := updateOf(t, 0, nil)
	s.set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
	s.want(math.MaxInt32)
	s.members = []*member{podOfKind("old", 3), podOfKind("old", 1_000_000)}
	s.ordinals = s.ordinalsInView()
	g.Expect(s.ordinals).To(HaveLen(workload.MaxCreations + 2 + 1))
	g.Expect(s.ordinals[:4]).To(Equal([]int{0, 2, 3, 4}))
	g.Expect(s.ordinals[len(s.ordinals)-1]).To(Equal(1_000_000), "it has a pod")

	s.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](999_999)
	g.Expect(s.heldOrdinals().Has(1_000_000)).To(BeFalse(), "999,999 pods are below it")
	s.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](math.MaxInt32)
	g.Expect(s.heldOrdinals().Has(1_000_000)).To(BeTrue())

	s.set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = byTier()
	g.Expect(s.heldOrdinals().Len()).To(Equal(len(s.ordinals)), "there is no room for any")
	s.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
	g.Expect(s.heldOrdinals()).To(Equal(sets.New(3, 1_000_000)), "those that do not exist come first")
}

func TestInUpdateOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy *appsv1beta1.UnorderedUpdateStrategy
		at       []string
		order    []int
	}{
		"by ordinal":          {at: []string{"old", "old unready", "old"}, order: []int{2, 1, 0}},
		"not available first": {strategy: &appsv1beta1.UnorderedUpdateStrategy{}, at: []string{"old unready", "old", "new", "old marked"}, order: []int{3, 0, 2, 1}},
		"by priority, then by ordinal": {
			strategy: byTier(), at: []string{"old tier=core", "old", "old tier=core", "old tier=edge", "old"}, order: []int{3, 2, 0, 4, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var order []int
			for _, m := range updateOf(t, 0, tc.strategy, tc.at...).inUpdateOrder() {
				order = append(order, m.ordinal)
			}
			NewWithT(t).Expect(order).To(Equal(tc.order))
		})
	}
}

func TestScalingBesideLostAndBrokenPods(t *testing.T) {
	crashing := func(m *member) *member {
		m.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		return m
	}
	lost := func(ordinal int) *member { return podOfKind("old lost", ordinal) }
	broken := func(ordinal int) *member { return crashing(podOfKind("old unready", ordinal)) }
	well := func(ordinal int) *member { return podOfKind("old", ordinal) }
	type pods = []*member
	for name, tc := range map[string]struct {
		ordered            bool
		members, condemned pods
		create, remove     []int
	}{
		"a lost one holds up no creation":                 {members: pods{lost(0)}, create: []int{1}},
		"a lost one that was to go neither":               {members: pods{well(0)}, condemned: pods{lost(7)}, create: []int{1}},
		"a lost one holds up no deletion":                 {members: pods{lost(0), well(1), well(2)}, condemned: pods{well(3), well(4)}, remove: []int{4}},
		"a lost one is not deleted again":                 {members: pods{well(0), well(1), well(2)}, condemned: pods{lost(3)}},
		"broken ones hold up no creation":                 {members: pods{broken(0), broken(1)}, create: []int{2}},
		"but a deletion":                                  {members: pods{broken(0), well(1), well(2)}, condemned: pods{well(3)}},
		"broken ones that are to go are deleted":          {members: pods{well(0), well(1), well(2)}, condemned: pods{broken(3), broken(4)}, remove: []int{4, 3}},
		"in order, a lost one holds up what comes after":  {ordered: true, members: pods{well(0), lost(1)}},
		"in order, a lost one holds up what is to go":     {ordered: true, members: pods{well(0), well(1), lost(2)}, condemned: pods{well(3)}},
		"in order, a lost one that was to go holds it up": {ordered: true, members: pods{well(0), well(1), well(2)}, condemned: pods{well(3), lost(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planScale(scaleFacts{
				ordinals: []int{0, 1, 2}, members: tc.members, condemned: tc.condemned, limit: 1, ordered: tc.ordered, now: builders.Start,
			})
			var removed []int
			for _, m := range plan.remove {
				removed = append(removed, m.ordinal)
			}
			g := NewWithT(t)
			g.Expect(plan.create).To(Equal(tc.create), "created")
			g.Expect(removed).To(Equal(tc.remove), "removed")
		})
	}
}

func TestRevisionForAVacantOrdinal(t *testing.T) {
	s := updateOf(t, 2, byTier(), "old", "", "new")
	s.held = s.heldOrdinals()
	g := NewWithT(t)
	g.Expect(s.revisionFor(1).Name()).To(Equal("old"), "no room is left")
	s.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
	s.held = s.heldOrdinals()
	g.Expect(s.revisionFor(1).Name()).To(Equal("new"), "there is room")
}
