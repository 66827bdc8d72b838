// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// The conditions in which a pod can be for scaling.
const (
	healthy     = "healthy"
	unready     = "unready"
	pending     = "pending"
	evicted     = "evicted"
	succeeded   = "succeeded"
	terminating = "terminating"
	// held: a hook holds it before its deletion.
	held = "held"
)

// podIn returns the pod with an ordinal in a condition.
func podIn(condition string, ordinal int) *member {
	b := builders.Pod(podName("sample", ordinal), "sample-1", "nginx:alpine")
	phase := func(p corev1.PodPhase) { b.With(func(pod *corev1.Pod) { pod.Status.Phase = p }) }
	switch condition {
	case unready:
		b.Ready(false, builders.Start)
	case pending:
		b.Ready(false, builders.Start)
		phase(corev1.PodPending)
	case evicted:
		b.Ready(false, builders.Start)
		phase(corev1.PodFailed)
	case succeeded:
		b.Ready(false, builders.Start)
		phase(corev1.PodSucceeded)
	case held:
		b.Label("lifecycle.apps.kruise.io/state", "PreparingDelete")
	case terminating:
		b.Deleted(builders.Start.Add(time.Hour))
	}
	pod := b.Build()
	return newMember(pod, ordinal, &appsv1beta1.Lifecycle{}, 0, builders.Start)
}

// pods maps ordinals to conditions.
type pods map[int]string

type scaleCase struct {
	wanted []int
	pods   pods
	// limit is scaleStrategy.maxUnavailable, 0 for none.
	limit  int
	gated  []int
	create []int
	remove []int
	// withheld is how many more are created when others have started.
	withheld int
}

func (c scaleCase) run(t *testing.T, ordered bool) {
	t.Helper()
	f := scaleFacts{ordinals: c.wanted, gated: sets.New(c.gated...), ordered: ordered, limit: -1}
	if c.limit > 0 {
		f.limit = c.limit
	}
	for _, ordinal := range slices.Sorted(maps.Keys(c.pods)) {
		m := podIn(c.pods[ordinal], ordinal)
		if slices.Contains(c.wanted, ordinal) {
			f.members = append(f.members, m)
		} else {
			f.condemned = append(f.condemned, m)
		}
	}
	plan := planScale(f)
	var removed []int
	for _, m := range plan.remove {
		removed = append(removed, m.ordinal)
	}
	g := NewWithT(t)
	g.Expect(plan.create).To(Equal(c.create), "created")
	g.Expect(removed).To(Equal(c.remove), "removed")
	g.Expect(plan.withheld).To(Equal(c.withheld), "withheld")
}

func TestOrderedScaling(t *testing.T) {
	three := []int{0, 1, 2}
	for name, test := range map[string]scaleCase{
		"the first":                                   {wanted: three, create: []int{0}},
		"the next when the first is ready":            {wanted: three, pods: pods{0: healthy}, create: []int{1}},
		"not the next while the first is not ready":   {wanted: three, pods: pods{0: unready}},
		"not the next while the first is pending":     {wanted: three, pods: pods{0: pending}},
		"not the next while the first is ending":      {wanted: three, pods: pods{0: terminating}},
		"one that is missing in the middle":           {wanted: three, pods: pods{0: healthy, 2: healthy}, create: []int{1}},
		"settled":                                     {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy}},
		"no pods wanted":                              {},
		"one that was evicted is replaced":            {wanted: three, pods: pods{0: healthy, 1: evicted, 2: healthy}, remove: []int{1}},
		"one that ended is replaced":                  {wanted: three, pods: pods{0: succeeded}, remove: []int{0}},
		"not before those below it are ready":         {wanted: three, pods: pods{0: unready, 1: evicted}},
		"the highest goes first":                      {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: healthy, 4: healthy}, remove: []int{4}},
		"one at a time":                               {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: healthy, 4: terminating}},
		"not while one that stays is not ready":       {wanted: three, pods: pods{0: healthy, 1: unready, 2: healthy, 3: healthy}},
		"one that is not ready":                       {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready}, remove: []int{3}},
		"one that was evicted":                        {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: evicted}, remove: []int{3}},
		"not while one below it is not ready, either": {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready, 4: unready}},
		"none of all that go, while none is ready":    {pods: pods{0: unready, 1: unready, 2: unready}},
		"one that a hook holds is removed":            {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready, 4: held}, remove: []int{4}},
		"the next beside one that a hook holds":       {wanted: three, pods: pods{0: held}, create: []int{1}},
		"no other one goes beside that":               {wanted: three, pods: pods{0: held, 1: healthy, 2: healthy, 3: healthy}},
		"nor does it wait for one that is held":       {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: held, 4: unready}, remove: []int{4}},
		"nor for one that has ended":                  {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: evicted, 4: unready}, remove: []int{4}},
		"one that has ended waits for none":           {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready, 4: succeeded}, remove: []int{4}},
		"a broken one below does not hold it up":      {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready, 4: healthy}, remove: []int{4}},
		"a reserved one goes when its place is taken": {wanted: []int{0, 2, 3}, pods: pods{0: healthy, 1: healthy, 2: healthy}, create: []int{3}},
		"and not before":                              {wanted: []int{0, 2, 3}, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: unready}},
		"then it goes":                                {wanted: []int{0, 2, 3}, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: healthy}, remove: []int{1}},
		"from another start":                          {wanted: []int{5, 6}, pods: pods{0: healthy, 5: healthy}, create: []int{6}},
	} {
		t.Run(name, func(t *testing.T) { test.run(t, true) })
	}
}

func TestParallelScaling(t *testing.T) {
	three := []int{0, 1, 2}
	for name, test := range map[string]scaleCase{
		"all at once":                      {wanted: three, create: three},
		"those that are missing":           {wanted: three, pods: pods{1: unready}, create: []int{0, 2}},
		"settled":                          {wanted: three, pods: pods{0: healthy, 1: healthy, 2: healthy}},
		"an ending one keeps its place":    {wanted: three, pods: pods{0: healthy, 1: terminating, 2: healthy}},
		"those that ended are replaced":    {wanted: three, pods: pods{0: evicted, 1: succeeded, 2: unready}, remove: []int{0, 1}},
		"all that are too many":            {wanted: []int{0}, pods: pods{0: unready, 1: healthy, 2: healthy}, remove: []int{2, 1}},
		"but not twice":                    {wanted: []int{0}, pods: pods{0: healthy, 1: terminating, 2: evicted}, remove: []int{2}},
		"a reserved one and its successor": {wanted: []int{0, 2, 3}, pods: pods{0: healthy, 1: healthy, 2: healthy}, create: []int{3}, remove: []int{1}},

		"as many as the limit":                        {wanted: three, limit: 2, create: []int{0, 1}, withheld: 1},
		"what is not ready counts":                    {wanted: three, pods: pods{0: unready}, limit: 2, create: []int{1}, withheld: 1},
		"what is ending starts nothing":               {wanted: three, pods: pods{0: terminating, 7: terminating}, limit: 2, create: []int{1, 2}},
		"one that is gone does not wait for another":  {wanted: three, pods: pods{0: terminating, 1: healthy}, limit: 1, create: []int{2}},
		"no other one goes while it is ending":        {wanted: []int{0}, pods: pods{0: terminating, 1: healthy}, limit: 1},
		"nor for one that may not be made now":        {wanted: three, pods: pods{1: healthy}, gated: []int{0}, limit: 1, create: []int{2}},
		"the limit is used up":                        {wanted: three, pods: pods{0: unready, 1: unready}, limit: 2, withheld: 1},
		"what ended is replaced in any case":          {wanted: three, pods: pods{0: unready, 1: unready, 2: evicted}, limit: 1, remove: []int{2}},
		"deleted up to the limit, the highest first":  {wanted: []int{0}, pods: pods{0: healthy, 1: healthy, 2: healthy, 3: healthy}, limit: 2, remove: []int{3, 2}},
		"one that is not ready is gone already":       {wanted: []int{0}, pods: pods{0: healthy, 1: healthy, 2: unready}, limit: 1, remove: []int{2}},
		"a healthy one is not, while another is":      {wanted: []int{0}, pods: pods{0: unready, 1: healthy, 2: healthy}, limit: 1},
		"one that a hook holds does not hold it up":   {wanted: three, pods: pods{0: healthy, 1: healthy, 7: held}, limit: 1, create: []int{2}, remove: []int{7}},
		"no other one goes, while a hook holds one":   {wanted: []int{0}, pods: pods{0: healthy, 1: healthy, 2: held}, limit: 1, remove: []int{2}},
		"nor does one that stays":                     {wanted: three, pods: pods{0: held, 1: healthy}, limit: 1, create: []int{2}},
		"no other one goes beside that":               {wanted: []int{0}, pods: pods{0: held, 1: healthy}, limit: 1},
		"created first, deleted when that is settled": {wanted: []int{0, 2}, pods: pods{0: healthy, 1: healthy}, limit: 1, create: []int{2}},
	} {
		t.Run(name, func(t *testing.T) { test.run(t, false) })
	}
}
