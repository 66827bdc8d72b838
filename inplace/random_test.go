// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Rollouts with random delays, faults and changes of mind, the same ones for the
// same seed. The model asserts the invariants at every write; in the end every
// pod must be ready at the last target, and stay alone.
func TestRandomRollouts(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			newChaos(t, seed).run()
		})
	}
}

// The same with a planner that sees the pods as they were some seconds ago: a
// cache that lags behind the own writes, as after a change of the leader. The
// EndpointSlices lag as well, but not behind the pods. The planner may be slower
// and overdraw a budget that it cannot see; what is drained, partitioned and
// labeled stays right.
func TestRandomRolloutsWithStaleReads(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newChaos(t, seed)
			c.readStale()
			c.run()
		})
	}
}

// chaos disturbs a model.
type chaos struct {
	*model
	random *rand.Rand
	calm   bool
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	replicas := 1 + random.IntN(6)
	m := newModel(t, replicas, 1+random.IntN(replicas), random.IntN(3) > 0)
	c := &chaos{model: m, random: random}
	if !m.gated && c.oneIn(2) {
		m.workload.Target.CannotDrain = unheeded
	}
	m.workload.MinReadySeconds = int32(3 * random.IntN(3))
	m.workload.Target.GracePeriod = c.upTo(6)
	for _, n := range m.nodes {
		n.stopTime, n.readyTime, n.listTime = c.upTo(20), time.Second+c.upTo(5), c.upTo(4)
		if n.old = random.IntN(5) == 0; n.old {
			n.pod.Status.ObservedGeneration = 0
		}
	}
	m.refuses = func() bool { return !c.calm && c.oneIn(8) }
	m.view = c.shuffle
	return c
}

func (c *chaos) upTo(seconds int) time.Duration {
	return time.Duration(c.random.IntN(seconds+1)) * time.Second
}

func (c *chaos) oneIn(n int) bool {
	return c.random.IntN(n) == 0
}

// shuffle gives the pods in any order.
func (c *chaos) shuffle(truth []PodFacts) []PodFacts {
	c.random.Shuffle(len(truth), func(i, j int) { truth[i], truth[j] = truth[j], truth[i] })
	return truth
}

// readStale lets the planner see old states, in the order in which they were.
func (c *chaos) readStale() {
	c.stale = true
	var history [][]PodFacts
	pods, services := 0, 0
	c.view = func(truth []PodFacts) []PodFacts {
		history = append(history, slices.Clone(truth))
		last := len(history) - 1
		pods = max(pods, last-c.random.IntN(4))
		services = max(pods, services, last-c.random.IntN(4))
		if c.calm {
			pods, services = last, last
		}
		seen := slices.Clone(history[pods])
		for i := range seen {
			seen[i].Pod = seen[i].Pod.DeepCopy()
			seen[i].Services = servicesOf(seen[i].Pod, history[services])
			seen[i].Held = c.keeps(seen[i].Pod)
		}
		return c.shuffle(seen)
	}
}

func servicesOf(pod *corev1.Pod, facts []PodFacts) []string {
	for _, f := range facts {
		if f.Pod.Name == pod.Name {
			return f.Services
		}
	}
	return nil
}

func (c *chaos) run() {
	c.t.Helper()
	c.say("%d pods, %d at a time, gate %t, drained %t, minReadySeconds %d, grace %s", len(c.nodes), c.workload.MaxUnavailable,
		c.gated, c.drains(), c.workload.MinReadySeconds, c.workload.Target.GracePeriod)
	for range 150 + c.random.IntN(100) {
		c.disturb()
		c.round()
	}
	c.calm, c.workload.Stopped, c.partition, c.denied = true, false, 0, ""
	revisions := []string{"a", "b", "c", "label", "env"}
	last := revisions[c.random.IntN(len(revisions))]
	c.retarget(last, []appsv1beta1.PodUpdateStrategyType{inPlaceIfPossible, reCreate}[c.random.IntN(2)])
	plan := c.runUntilQuiet()

	c.Expect(plan.Moves).To(BeEmpty(), c.log.String())
	c.Expect(plan.Blockers).To(BeEmpty(), c.log.String())
	c.Expect(plan.Pods).To(HaveLen(len(c.nodes)))
	for _, p := range plan.Pods {
		if !p.Updated || !p.Ready || !p.Available || RevisionOf(p.Pod) != last {
			c.fail("%s ended as %+v", p.Pod.Name, p)
		}
	}
	for _, n := range c.nodes {
		if !n.available() || !n.listed {
			c.fail("%s does not serve", n.pod.Name)
		}
		if !n.isGiven() {
			c.fail("%s was not restarted for %s", n.pod.Name, n.request)
		}
	}
}

// disturb does at most one thing.
func (c *chaos) disturb() {
	n := c.nodes[c.random.IntN(len(c.nodes))]
	switch c.random.IntN(60) {
	case 0, 1:
		revisions := []string{"a", "b", "c", "label", "env", "missing", "crash"}
		policies := []appsv1beta1.PodUpdateStrategyType{inPlaceIfPossible, inPlaceIfPossible, inPlaceOnly, reCreate}
		c.retarget(revisions[c.random.IntN(len(revisions))], policies[c.random.IntN(len(policies))])
	case 2:
		c.workload.Stopped = !c.workload.Stopped
		c.say("user: stopped %t", c.workload.Stopped)
	case 3:
		c.partition = c.random.IntN(len(c.nodes) + 1)
		c.say("user: partition %d", c.partition)
	case 4, 5:
		n.crash()
	case 6:
		n.silent = c.now.Add(c.upTo(30))
	case 7:
		c.deleteByHand(n)
	case 8:
		c.askForDeletion(n)
	case 9:
		n.silent = c.now.Add(c.upTo(200)) // longer than a pod may take to end
	case 10, 11:
		c.toggleKeepReady()
	case 12:
		c.denied = []string{"", c.workload.Target.Name}[c.random.IntN(2)]
		c.say("user: a policy denies %q", c.denied)
	case 13, 14:
		n.ask()
	default:
	}
}

// retarget sets the target; pods that are held and made again come back at the
// one before.
func (c *chaos) retarget(revision string, policy appsv1beta1.PodUpdateStrategyType) {
	if revision != c.workload.Target.Name {
		c.current = c.workload.Target.Name
	}
	c.say("user: target %s, %s", revision, policy)
	c.target(revision, policy)
}

func (c *chaos) toggleKeepReady() {
	if c.workload.Target.KeepReady == nil {
		c.workload.Target.KeepReady = []string{"main"}
	} else {
		c.workload.Target.KeepReady = nil
	}
	c.say("user: keepReady %v", c.workload.Target.KeepReady)
}

func (c *chaos) deleteByHand(n *node) {
	if n.pod == nil || n.pod.DeletionTimestamp != nil {
		return
	}
	c.say("user: deletes %s", n.pod.Name)
	n.delete()
}

func (c *chaos) askForDeletion(n *node) {
	if n.pod == nil {
		return
	}
	c.say("user: labels %s", n.pod.Name)
	metav1.SetMetaDataLabel(&n.pod.ObjectMeta, appsv1beta1.SpecifiedDeleteKey, "")
	n.written()
}
