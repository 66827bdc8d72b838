// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/metrics"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/inplace"
)

// manager is one life of the operator: a cache that begins with what is there, a
// queue with one place, and the real reconciler.
type manager struct {
	world      *World
	ctx        context.Context //nolint:containedctx // a run has one, from its beginning to its end
	cache      *cache
	client     *managerClient
	reconciler reconcile.Reconciler
	// measured is what it measures with.
	measured metrics.Metrics
	// gates opens gates of native pods; nil for other sets.
	gates reconcile.Reconciler
	// leftovers evicts native pods that were left behind; nil for other sets.
	leftovers reconcile.Reconciler
	// due is when the set is reconciled next; zero for not at all.
	due time.Time
	// retries counts the failures in a row.
	retries int
	// startsAt is when the next manager takes over from this dead one.
	startsAt time.Time
}

// startManager starts the next life.
func (w *World) startManager(ctx context.Context) error {
	indexes, err := newIndexes(ctx)
	if err != nil {
		return err
	}
	if w.manager != nil {
		w.checkMetrics(w.manager.measured)
	}
	m := &manager{world: w, cache: newCache(w.server, newTrimmer()), measured: metrics.New()}
	m.cache.observe = m.observe
	m.client = &managerClient{
		server: w.server, cache: m.cache, indexes: indexes, scheme: scheme, written: map[string]int64{},
		fateOf: w.fateOf, stray: w.takeStray, done: m.done, turnedDown: w.law.turnedDown, listed: w.rules.notice,
	}
	m.reconciler = m.newReconciler()
	m.ctx = ctrl.LoggerInto(ctx, funcr.New(func(_, line string) { w.say("manager means to: %s", noteIn(line)) }, funcr.Options{}))
	m.due = w.clock.Now()
	w.manager = m
	w.rules.forget()
	return nil
}

// newReconciler returns the reconciler of the kind of the set.
func (m *manager) newReconciler() reconcile.Reconciler {
	w := m.world
	live, events := &liveReader{server: w.server}, &recorder{w}
	var r reconciler
	if w.native == nil {
		r = w.settings.kind().reconciler(m, live, events)
	} else {
		m.gates = gates.NewReconciler(m.client, live, w.clock)
		m.leftovers = nativecontroller.NewLeftovers(m.client, &liveReader{server: w.server, listed: w.native.law.noticeLive}, events, w.clock)
		r = nativecontroller.NewReconciler(w.native.kind, m.client, live, events, w.clock)
	}
	r.Measure(m.measured)
	r.WriteInOrder()
	r.PullAs(w.settings.pulling())
	return r
}

// observe queues the set for what the controller watches.
func (m *manager) observe(kind string, before, after client.Object) {
	switch {
	case isSet(kind):
		if before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && before.GetUID() == after.GetUID() {
			return
		}
	case isNative(kind) && kind != "ReplicaSet":
		if !isOfNativeInterest(before, after) {
			return
		}
	case kind == "Pod":
		// Owned pods and orphans: the controller watches both.
	case kind == "Node":
		if !isOfDaemonInterest(before, after) {
			return
		}
	case kind == "EndpointSlice":
		if !m.isDraining() {
			return
		}
	case kind == "ControllerRevision":
		if m.world.native == nil {
			return
		}
	}
	if m.world.native != nil && !m.isMapped(kind, after) {
		return
	}
	m.queue(m.world.clock.Now())
}

// isMapped reports whether what happens to an object is mapped to the native workload.
func (m *manager) isMapped(kind string, after client.Object) bool {
	return kind == m.world.native.key().kind || kind == pullerKind || m.showsHold() || tellsOfHold(after)
}

// showsHold reports whether the cache shows a native workload as held: nothing of
// others is mapped to them.
func (m *manager) showsHold() bool {
	obj := m.cache.objects[m.world.native.key()]
	return obj != nil && isHeld(obj)
}

// isDraining reports whether the cache shows a pod that may wait for an
// EndpointSlice: others are not mapped to a set.
func (m *manager) isDraining() bool {
	for _, obj := range m.cache.list("Pod") {
		if pod, ok := obj.(*corev1.Pod); ok && inplace.IsMarkedNotReady(pod) {
			return true
		}
	}
	return false
}

// queue asks for a reconciliation at a time, if none is asked for earlier.
func (m *manager) queue(at time.Time) {
	if m.due.IsZero() || at.Before(m.due) {
		m.due = at
	}
}

func (m *manager) isWaiting() bool {
	return m.client.dead || !m.due.IsZero()
}

// deliver brings the news of this second to the cache, or some of it.
func (m *manager) deliver() {
	if m.client.dead {
		return
	}
	for _, kind := range kinds {
		behind := m.cache.behind(kind)
		if behind == 0 || kind == m.world.withheld {
			continue
		}
		if lag := m.world.settings.lag; !m.world.calm && lag > 0 && m.world.choices.intN(lag+1) > 0 {
			behind = m.world.choices.intN(min(behind, 255) + 1)
		}
		m.cache.deliver(kind, behind)
	}
}

// step reconciles the set if it is due, or starts the next life.
func (m *manager) step() {
	w := m.world
	now := w.clock.Now()
	switch {
	case m.client.dead && !now.Before(m.startsAt):
		w.say("a new manager starts")
		if err := w.startManager(context.WithoutCancel(m.ctx)); err != nil {
			w.violate("start manager: %w", err)
		}
	case m.client.dead || m.due.IsZero() || now.Before(m.due):
	case !w.calm && w.settings.lag > 0 && w.choices.oneIn(4): // other sets are reconciled first
	default:
		m.reconcile(now)
	}
	if m.gates != nil {
		m.openGates()
		m.evictLeftovers()
	}
}

// openGates lets gates of pods be opened that no controller updates. It is asked every
// second: what its queue would do with errors is of no interest here.
func (m *manager) openGates() {
	for _, obj := range m.cache.list("Pod") {
		if m.client.dead || !m.world.calm && m.world.choices.oneIn(4) {
			continue
		}
		if _, err := m.gates.Reconcile(m.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil && !m.client.dead {
			m.world.say("opening gates failed: %v", err)
		}
	}
	m.startAgain()
}

// evictLeftovers lets pods be evicted that an update left behind. It is asked every second,
// as openGates. Nothing is chosen here: the runs that are kept stay what they are.
func (m *manager) evictLeftovers() {
	for _, obj := range m.cache.list("ReplicaSet") {
		if m.client.dead {
			break
		}
		if _, err := m.leftovers.Reconcile(m.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil && !m.client.dead {
			m.world.say("evicting leftovers failed: %v", err)
		}
	}
	m.startAgain()
}

// startAgain says when the next manager starts, if this one died and that is not said yet.
func (m *manager) startAgain() {
	if m.client.dead && m.startsAt.Before(m.world.clock.Now()) {
		m.startsAt = m.world.clock.Now().Add(m.world.choices.seconds(20))
	}
}

func (m *manager) reconcile(now time.Time) {
	w := m.world
	m.due = time.Time{}
	w.rules.begin()
	result, err := m.reconciler.Reconcile(m.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: setName}})
	if m.client.dead {
		m.startsAt = now.Add(w.choices.seconds(20))
		w.say("the manager dies")
		return
	}
	w.law.checkRefusalsAreNamed()
	if err != nil {
		w.say("reconciliation failed: %v", err)
		m.retries++
		m.queue(now.Add(time.Duration(min(1<<min(m.retries, 5), 30)) * time.Second))
		return
	}
	m.retries = 0
	if result.RequeueAfter > 0 {
		m.queue(now.Add(result.RequeueAfter))
	}
	w.rules.end()
}

// done is told of every write that was carried out.
func (m *manager) done(written write) {
	m.world.say("manager: %s", written.words)
	m.world.log = append(m.world.log, written.words)
	m.world.rules.judge(written)
}

// fateOf decides what becomes of a write of the manager.
func (w *World) fateOf(written write) fate {
	w.rules.attempted()
	w.getAhead(written)
	if w.fate != nil {
		return w.fate(written)
	}
	if w.calm {
		return succeeds
	}
	var f fate
	switch {
	case w.choices.oneIn(w.settings.deaths):
		f = pick(w.choices, []fate{killedAfter, killedBefore, strays})
	case w.choices.oneIn(w.settings.faults):
		f = pick(w.choices, []fate{failed, conflicts, unanswered})
	default:
		return succeeds
	}
	w.say("%s: %s", f, written.words)
	w.coverage.event(f.String(), w)
	return f
}

// takeStray keeps a write that arrives when its sender is dead.
func (w *World) takeStray(written write) {
	w.returns = append(w.returns, stray{at: w.clock.Now().Add(time.Second + w.choices.seconds(20)), write: written, set: w.law.seenSet})
}

func (f fate) String() string {
	return [...]string{"succeeds", "conflicts", "fails", "loses its answer", "dies before", "dies after", "dies and strays"}[f]
}

// noteIn returns the note of a move, or the whole line of another log.
func noteIn(line string) string {
	if _, note, ok := strings.Cut(line, `"note"="`); ok {
		return strings.TrimSuffix(note, `"`)
	}
	return line
}

// recorder adds events to the story.
type recorder struct{ world *World }

// Eventf implements events.EventRecorder.
//
//nolint:revive // the interface has that many arguments
func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	if n := r.world.native; n != nil {
		words := fmt.Sprintf(note, args...)
		r.world.say("event: %s: %s", reason, words)
		n.law.tell(reason, words)
		return
	}
	if eventType == corev1.EventTypeWarning && kindOf(regarding) == r.world.setKey().kind {
		r.world.say("event: %s: %s", reason, fmt.Sprintf(note, args...))
	}
}
