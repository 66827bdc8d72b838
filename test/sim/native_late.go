// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The caches of Kubernetes' own controllers, which share them. Each kind is watched by
// itself, so one may be seen later than another.
//
// What the controllers have against it: those of ReplicaSets and of DaemonSets create and
// delete no pods until they see those that they created and deleted before (expectations).
// From Kubernetes 1.36 on, they and the controller of StatefulSets do nothing at all until
// then (StaleControllerConsistency). That of Deployments writes to ReplicaSets, and the
// server refuses what was made from an older state. None of them waits for what others
// have written.

// late are the settings of what Kubernetes sees late. The zero value is nothing.
type late struct {
	on bool
	// current: controllers wait until they see what they have written.
	current bool
	// by is how many seconds late each kind is seen always; else that is drawn at times.
	by map[string]int
}

func (l late) String() string {
	return fmt.Sprintf("Kubernetes sees late: %t, waits for its own writes %t, always %v", l.on, l.current, l.by)
}

// chosenLate returns settings as the choices have it.
func chosenLate(c *Choices) late {
	if !c.oneIn(2) {
		return late{}
	}
	return late{on: true, current: c.oneIn(2)}
}

// lateKinds are those that are seen late. The workload itself is not: see openFindings.
var lateKinds = []string{"Pod", "ReplicaSet", "ControllerRevision"}

// lateCache is what the controllers of Kubernetes see.
type lateCache struct {
	world *World
	cache *cache
	// view has what the cache has.
	view *server
	// kinds are those that are watched.
	kinds []string
	// versions are what the server was at in each second.
	versions []int64
	// upTo is up to which write each kind is seen.
	upTo map[string]int64
	// written are the last writes to pods of each controller, by the name of their owner.
	written map[string]int64
	// drawn is how late a kind is seen now, until when.
	drawn map[string]drawnLag
}

type drawnLag struct {
	by    int
	until time.Time
}

func newLateCache(n *nativeWorkload) *lateCache {
	c := newCache(n.world.server, nil)
	return &lateCache{
		world: n.world, cache: c, view: &server{objects: c.objects}, kinds: append(slices.Clone(lateKinds), n.key().kind),
		upTo: map[string]int64{}, written: map[string]int64{}, drawn: map[string]drawnLag{},
	}
}

// deliver brings the news to the cache that have had their time.
func (c *lateCache) deliver() {
	if c == nil {
		return
	}
	c.versions = append(c.versions, c.world.server.version)
	c.draw()
	for _, kind := range c.kinds {
		at := c.versions[max(len(c.versions)-1-c.by(kind), 0)]
		c.upTo[kind] = max(c.upTo[kind], at)
		c.cache.deliverUpTo(kind, at)
	}
}

// draw lets one kind be seen late for a while.
func (c *lateCache) draw() {
	choices := c.world.choices
	if c.world.calm || c.world.settings.late.by != nil || !choices.oneIn(8) {
		return
	}
	kind, lag := pick(choices, lateKinds), drawnLag{1 + choices.intN(8), c.world.clock.Now().Add(choices.seconds(30))}
	c.world.say("kubernetes: sees every %s %ds late, until %s", kind, lag.by, lag.until.Sub(start))
	c.drawn[kind] = lag
}

// by returns how many seconds late a kind is seen now.
func (c *lateCache) by(kind string) int {
	if by := c.world.settings.late.by; by != nil {
		return by[kind]
	}
	if lag := c.drawn[kind]; !c.world.calm && c.world.clock.Now().Before(lag.until) {
		return lag.by
	}
	return 0
}

// wrote notes that the controller of an owner has written to a pod.
func (c *lateCache) wrote(owner client.Object) {
	if c != nil {
		c.written[owner.GetName()] = c.world.server.version
	}
}

// expects reports whether a controller does not see yet what it has done to the pods of
// an owner.
func (c *lateCache) expects(owner client.Object) bool {
	return c != nil && c.upTo["Pod"] < c.written[owner.GetName()]
}

// waits reports whether a controller does nothing for that reason.
func (c *lateCache) waits(owner client.Object) bool {
	return c.expects(owner) && c.world.settings.late.current
}

// isStale reports whether an object has changed since it was what was seen: the server
// refuses a write that was made from it.
func (c *lateCache) isStale(seen client.Object) bool {
	if c == nil {
		return false
	}
	now := c.world.server.objects[objectKey{kindOf(seen), seen.GetName()}]
	return now == nil || now.GetResourceVersion() != seen.GetResourceVersion()
}
