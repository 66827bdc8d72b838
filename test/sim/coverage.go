// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// Coverage counts what happened to pods in which state.
type Coverage struct {
	counts map[string]map[inplace.State]int
}

// NewCoverage returns an empty Coverage, to add those of runs to.
func NewCoverage() *Coverage {
	return &Coverage{counts: map[string]map[inplace.State]int{}}
}

// Add adds what another Coverage counted.
func (c *Coverage) Add(other *Coverage) {
	for name, states := range other.counts {
		for state, n := range states {
			c.count(name, state, n)
		}
	}
}

func (c *Coverage) count(name string, state inplace.State, n int) {
	if c.counts[name] == nil {
		c.counts[name] = map[inplace.State]int{}
	}
	c.counts[name][state] += n
}

// event counts an event for every pod that there is.
func (c *Coverage) event(name string, w *World) {
	for _, pod := range all[*corev1.Pod](w.server) {
		c.count(name, w.stateOf(pod), 1)
	}
}

// states are those that a pod can be found in.
var states = []inplace.State{
	inplace.Settled, inplace.Waiting, inplace.HookHeld, inplace.Draining, inplace.Grace, inplace.Patching, inplace.Restarting, inplace.Verifying,
	inplace.Recreating, inplace.Stuck,
}

// stateOf tells where a pod is, by what it shows.
func (w *World) stateOf(pod *corev1.Pod) inplace.State {
	set := w.set()
	progress := inplace.Observe(pod, w.clock.Now())
	ready := conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)
	atTarget := set != nil && maps.EqualFunc(ownImages(pod), images(&corev1.Pod{Spec: set.Spec.Template.Spec}), means)
	switch {
	case pod.DeletionTimestamp != nil:
		return inplace.Recreating
	case slices.ContainsFunc(pod.Status.ContainerStatuses, isStuck):
		return inplace.Stuck
	case set != nil && isHeldByHook(pod, set.GetLifecycle()):
		return inplace.HookHeld
	case !progress.Complete:
		return inplace.Restarting
	case atTarget && ready:
		return inplace.Settled
	case !isKeptOut(pod) && ready:
		return inplace.Waiting
	case atTarget || !isKeptOut(pod):
		return inplace.Verifying
	case ready || w.slices.sendsTo(pod):
		return inplace.Draining
	case w.clock.Now().Before(conditionSince(pod, corev1.PodReady).Add(w.settings.gracePeriod)):
		return inplace.Grace
	default:
		return inplace.Patching
	}
}

// isHeldByHook reports whether a hook holds a pod before it is updated or deleted.
func isHeldByHook(pod *corev1.Pod, lifecycle *appsv1beta1.Lifecycle) bool {
	if lifecycle == nil {
		return false
	}
	switch lifecycleStateOf(pod) {
	case appsv1beta1.LifecycleStatePreparingUpdate:
		return isMarked(pod, lifecycle.InPlaceUpdate)
	case appsv1beta1.LifecycleStatePreparingDelete:
		return isMarked(pod, lifecycle.PreDelete)
	default:
		return false
	}
}

func isStuck(status corev1.ContainerStatus) bool {
	waiting := status.State.Waiting
	return waiting != nil && waiting.Reason != "ContainerCreating"
}

// Print prints a table of events and states.
func (c *Coverage) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "event\t")
	for _, state := range states {
		fmt.Fprintf(table, "%s\t", state)
	}
	fmt.Fprintln(table)
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(table, "%s\t", name)
		for _, state := range states {
			fmt.Fprintf(table, "%d\t", c.counts[name][state])
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// Missing returns the events that never met a pod in some state, in words.
func (c *Coverage) Missing() []string {
	var missing []string
	for _, d := range disturbances[1:] {
		for _, state := range states {
			if c.counts[d.name][state] == 0 {
				missing = append(missing, fmt.Sprintf("%s while %s", d.name, state))
			}
		}
	}
	return missing
}
