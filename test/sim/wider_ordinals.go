// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Which ordinals the pods of a StatefulSet have: the first one moves, and users
// reserve ordinals and free them.

// ordinals are the settings of that. The zero value is a set that counts from 0.
type ordinals struct {
	start    int
	reserved []intstr.IntOrString
}

// lastOrdinal bounds what users reserve, and where they let a set begin.
const lastOrdinal = 5

// chosenOrdinals returns settings as the choices have it.
func chosenOrdinals(c *Choices) ordinals {
	if !c.oneIn(2) {
		return ordinals{}
	}
	o := ordinals{start: c.intN(3)}
	for range c.intN(3) {
		o.reserved = append(o.reserved, chosenReservation(c))
	}
	return o
}

// chosenReservation returns an ordinal, or a range of them.
func chosenReservation(c *Choices) intstr.IntOrString {
	first := c.intN(lastOrdinal)
	if c.oneIn(3) {
		return intstr.FromString(fmt.Sprintf("%d-%d", first, first+1+c.intN(2)))
	}
	return intstr.FromInt(first)
}

func (o ordinals) String() string {
	return fmt.Sprintf("ordinals from %d without %v", o.start, o.reserved)
}

// fill writes them into a set.
func (o ordinals) fill(set *appsv1beta1.StatefulSet) {
	if o.start > 0 {
		set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: int32(o.start)} //nolint:gosec // small
	}
	set.Spec.ReserveOrdinals = slices.Clone(o.reserved)
}

var ordinalDisturbances = []disturbance{
	{"ordinal reserved", (*World).reserveOrdinal, 3},
	{"ordinal freed", (*World).freeOrdinal, 2},
	{"first ordinal", (*World).moveStart, 1},
}

// changeOrdinals changes what only a StatefulSet has.
func (w *World) changeOrdinals(change func(*appsv1beta1.StatefulSet)) {
	if w.settings.clones.is() {
		return
	}
	w.changeSet(func(set *appsv1beta1.StatefulSet) {
		change(set)
		w.say("user: pods %v", podsOf(set))
	})
}

func (w *World) reserveOrdinal() {
	reserved := chosenReservation(w.choices)
	w.changeOrdinals(func(set *appsv1beta1.StatefulSet) {
		w.say("user: reserves %s", reserved.String())
		set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, reserved)
	})
}

func (w *World) freeOrdinal() {
	at := w.choices.intN(3)
	w.changeOrdinals(func(set *appsv1beta1.StatefulSet) {
		if at < len(set.Spec.ReserveOrdinals) {
			w.say("user: frees %s", set.Spec.ReserveOrdinals[at].String())
			set.Spec.ReserveOrdinals = slices.Delete(set.Spec.ReserveOrdinals, at, at+1)
		}
	})
}

func (w *World) moveStart() {
	start := w.choices.intN(lastOrdinal)
	w.changeOrdinals(func(set *appsv1beta1.StatefulSet) {
		w.say("user: ordinals.start %d", start)
		set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: int32(start)} //nolint:gosec // small
	})
}
