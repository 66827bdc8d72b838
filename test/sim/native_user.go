// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// nativeDisturbance is something that is not the operator's doing.
type nativeDisturbance struct {
	name   string
	do     func(*nativeWorkload)
	weight int
}

func ofWorld(do func(*World)) func(*nativeWorkload) {
	return func(n *nativeWorkload) { do(n.world) }
}

// nativeDisturbances are what happens to native workloads. The first does nothing.
var nativeDisturbances = []nativeDisturbance{
	{"nothing", func(*nativeWorkload) {}, 1},
	{"revision", (*nativeWorkload).changeRevision, 8},
	{"previous revision", (*nativeWorkload).undo, 4},
	{"policy", (*nativeWorkload).changePolicy, 3},
	{"paused", (*nativeWorkload).togglePause, 2},
	{"partition", (*nativeWorkload).changePartition, 2},
	{"budget", (*nativeWorkload).changeBudget, 1},
	{"scale", (*nativeWorkload).scale, 4},
	{"released", (*nativeWorkload).askForRelease, 1},
	{"applied", (*nativeWorkload).apply, 2},
	{"pod deleted", ofWorld((*World).deletePod), 3},
	{"pod evicted", ofWorld((*World).evictPod), 1},
	{"container ends", ofWorld((*World).crashContainer), 3},
	{"kubelet silent", ofWorld((*World).silenceKubelet), 2},
	{"node gone", ofWorld((*World).killNode), 1},
	{"node back", ofWorld((*World).bringBackNode), 2},
	{"pod forced away", ofWorld((*World).forcePod), 1},
	{"update refused", ofWorld((*World).togglePolicy), 1},
	{"operator killed", ofWorld((*World).killManager), 2},
	{"pods refused", (*nativeWorkload).refusePods, 2},
	{"drain policy", ofWorld((*World).toggleDrainPolicy), 1},
	{"drained by another", ofWorld((*World).drainElsewhere), 1},
	{"label taken off", ofWorld((*World).takeLabelOff), 1},
}

// disturb does one of them.
func (n *nativeWorkload) disturb() {
	total := 0
	for _, d := range nativeDisturbances {
		total += d.weight
	}
	at := n.world.choices.intN(total)
	for _, d := range nativeDisturbances {
		if at -= d.weight; at < 0 {
			n.world.coverage.event(d.name, n.world)
			d.do(n)
			return
		}
	}
}

// to asks for a revision.
func (n *nativeWorkload) to(r revision) {
	if r.name != n.wish.revision.name {
		n.world.previous = n.wish.revision
	}
	n.wish.revision = r
	how := n.world.choices.intN(3)
	n.world.say("user: revision %s, %s", r.name, [...]string{"set", "applied", "replaced"}[how])
	if how == 0 {
		n.askTemplate()
	} else {
		n.ask(how == 2)
	}
}

func (n *nativeWorkload) changeRevision() { n.to(pick(n.world.choices, revisions)) }

func (n *nativeWorkload) undo() {
	if sets := n.replicaSets(); n.world.settings.undoesAll && len(sets) > 0 {
		n.rolloutUndo(pick(n.world.choices, sets))
		return
	}
	if n.world.previous.name != "" {
		n.to(n.world.previous)
	}
}

func (n *nativeWorkload) apply() {
	n.world.say("user: applies the manifest again")
	n.ask(n.world.choices.oneIn(2))
}

func (n *nativeWorkload) changePolicy() {
	n.wish.policy = pick(n.world.choices, []appsv1beta1.PodUpdateStrategyType{
		appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType, "",
	})
	n.world.say("user: policy %q", n.wish.policy)
	n.ask(n.world.choices.oneIn(2))
}

func (n *nativeWorkload) togglePause() {
	if n.kind != nativecontroller.Deployment {
		return
	}
	n.wish.paused = !n.wish.paused
	n.world.say("user: paused %t", n.wish.paused)
	n.ask(false)
}

func (n *nativeWorkload) changePartition() {
	if n.kind != nativecontroller.StatefulSet || n.wish.bare {
		return
	}
	n.wish.partition = int32(n.world.choices.intN(int(n.wish.replicas) + 1)) //nolint:gosec // small
	n.world.say("user: partition %d", n.wish.partition)
	n.ask(false)
}

func (n *nativeWorkload) changeBudget() {
	n.wish.maxUnavailable = int32(1 + n.world.choices.intN(3)) //nolint:gosec // small
	if n.kind == nativecontroller.Deployment {
		n.wish.surge = int32(n.world.choices.intN(3)) //nolint:gosec // small
		n.wish.maxUnavailable -= min(n.wish.surge, 1)
	}
	n.world.say("user: maxUnavailable %d, maxSurge %d", n.wish.maxUnavailable, n.wish.surge)
	n.ask(false)
}

func (n *nativeWorkload) scale() {
	if n.kind == nativecontroller.DaemonSet {
		return
	}
	n.wish.replicas = int32(n.world.choices.intN(6)) //nolint:gosec // small
	n.world.say("user: replicas %d", n.wish.replicas)
	n.ask(false)
}

// askForRelease ends the hold by hand.
func (n *nativeWorkload) askForRelease() {
	if !isHeld(n.object()) {
		return
	}
	n.world.say("user: releases the workload")
	n.law.asked()
	n.write(func(obj client.Object) {
		labels := obj.GetLabels()
		labels[native.HeldLabel] = native.Release
		obj.SetLabels(labels)
	})
}

// calmDown ends all that is not the operator's doing: the user asks for a last
// revision, and nothing stands in its way.
func (n *nativeWorkload) calmDown(last revision) {
	w := n.world
	w.say("everything calms down")
	w.calm = true
	w.server.admit = nil
	w.bringBackNode()
	for _, node := range w.nodes {
		node.silentUntil = time.Time{}
	}
	w.setDrainPolicy(false)
	w.endOtherDrains()
	n.wish.revision, n.wish.paused, n.wish.partition = last, false, 0
	wanted := w.settings.template(last)
	if r := n.revisionIn(&wanted); r != nil { // the first with this template: names do not matter
		delete(n.refused, r.name)
	}
	if n.wish.policy != "" {
		n.wish.policy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	}
	w.say("user: %s", n.wish)
	n.ask(w.choices.oneIn(2))
}

// chosenNative returns settings and a workload as the choices have it.
func chosenNative(c *Choices) (settings, nativecontroller.Kind, wish) {
	s := reference()
	s.gated = c.oneIn(2)
	s.sidecar = c.oneIn(4)
	s.minReadySeconds = pick(c, []int{0, 0, 3})
	s.minStopTime, s.maxStopTime, s.readyTime, s.endpointDelay = 0, 1+c.intN(10), c.seconds(5), c.intN(6)
	if s.gated {
		s.gracePeriod = pick(c, []time.Duration{0, 3 * time.Second, 10 * time.Second})
	}
	s.reads = c.oneIn(4)
	s.unserved = c.oneIn(6)
	s.lag = c.intN(6)
	s.faults = pick(c, []int{0, 0, 40, 15, 6})
	s.deaths = pick(c, []int{0, 40, 15, 6})
	s.changes = pick(c, []int{40, 20, 12, 6})
	kind := pick(c, []nativecontroller.Kind{nativecontroller.Deployment, nativecontroller.Deployment, nativecontroller.StatefulSet, nativecontroller.DaemonSet})
	first := firstWish()
	first.replicas, first.maxUnavailable = int32(1+c.intN(4)), int32(1+c.intN(2)) //nolint:gosec // small
	first.history = pick(c, []int32{10, 2, 1, 0})
	first.ordered, first.bare = c.oneIn(3), kind == nativecontroller.StatefulSet && c.oneIn(3)
	if c.oneIn(4) {
		first.policy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	}
	s.late = chosenLate(c)
	s.refusesPods, s.undoesAll = c.oneIn(3), c.oneIn(3)
	if kind == nativecontroller.Deployment {
		first.surge = pick(c, []int32{1, 1, 2, 0})
		first.maxUnavailable -= min(first.surge, 1)
	}
	return s, kind, first
}

// firstWish is a workload of three pods.
func firstWish() wish {
	return wish{
		revision: revisions[0], replicas: 3, maxUnavailable: 2, surge: 1, history: 10, policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
}

// RunNative runs a workload of Kubernetes through a time of disturbances, and brings
// it to rest.
func RunNative(choices *Choices) Result {
	s, kind, first := chosenNative(choices)
	return runNative(choices, s, kind, first)
}

func runNative(choices *Choices, s settings, kind nativecontroller.Kind, first wish) Result {
	w, err := newNativeWorld(choices, s, kind, first)
	if err != nil {
		return Result{Err: err, Coverage: NewCoverage()}
	}
	for range chaosFor + choices.intN(100) {
		if w.failure == nil {
			w.step()
		}
	}
	w.native.calmDown(pick(choices, goodNativeRevisions()))
	w.native.unblock()
	w.rest()
	return w.result()
}

func nativeRevisionNamed(name string) revision {
	return revisions[slices.IndexFunc(revisions, func(r revision) bool { return r.name == name })]
}
