// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// dataLaw asserts that no byte is ever lost: what was acknowledged under the name of a
// claim is there whenever a pod uses that claim, and is somewhere at all times.
type dataLaw struct {
	world *World
	// expected are the writes that a claim must have, by its name.
	expected map[string]bytes
	// discarded are those that are only to be kept, because the user asked for an older
	// volume, or for an empty one.
	discarded map[string]bytes
	// lost were in the memory of a node that died.
	lost sets.Set[int]
	// writers are the pods that wrote last, by volume.
	writers map[string]types.UID
	// deleted are the claims that the operator has deleted.
	deleted sets.Set[types.UID]
	// undone are the claims for which the user asked for an older volume; emptied: the
	// user said that claims may start empty.
	undone  sets.Set[string]
	emptied bool
	// forgotten are the claims that a user has deleted, with what they told of others.
	forgotten sets.Set[string]
	// used are the snapshots from which volumes were made.
	used sets.Set[string]
	// keeps: the user said at times that snapshots are kept, which nothing names then.
	keeps bool
	// dropped are the volumes that a user has deleted.
	dropped sets.Set[string]
}

func newDataLaw(w *World) *dataLaw {
	return &dataLaw{
		world: w, expected: map[string]bytes{}, discarded: map[string]bytes{}, lost: sets.New[int](), writers: map[string]types.UID{},
		deleted: sets.New[types.UID](), undone: sets.New[string](), forgotten: sets.New[string](), used: sets.New[string](), dropped: sets.New[string](),
	}
}

// acknowledged notes a write, and asserts that no other pod writes to the volume.
func (d *dataLaw) acknowledged(w *worker, v *volume, write int) {
	for _, node := range d.world.nodes {
		for _, other := range node.workers {
			if other != w && slices.Contains(other.volumes, v) && other.writes() {
				d.world.violate("%s and %s (%s) write to volume %s", w.name, other.name, other.uid, v.name)
			}
		}
	}
	d.writers[v.name] = w.uid
	d.expected[v.claim] = append(d.expected[v.claim], write)
	recreate := d.world.claimStrategy().Recreate
	d.keeps = d.keeps || recreate == nil || recreate.Snapshot != appsv1beta1.DeleteRecreateRetention
}

// forget forgives what died with a node.
func (d *dataLaw) forget(writes bytes) { d.lost.Insert(writes...) }

// missing returns what a claim must have that is not among the writes.
func (d *dataLaw) missing(claim string, writes bytes) bytes {
	there := sets.New(writes...).Union(d.lost)
	return slices.DeleteFunc(slices.Clone(d.expected[claim]), there.Has)
}

// mounted asserts that a pod finds in its volume what was acknowledged before.
func (d *dataLaw) mounted(w *worker, v *volume) {
	if missing := d.missing(v.claim, v.written); len(missing) > 0 {
		d.world.violate("data: %s runs on volume %s, which lacks %d writes of claim %s, the first is %d", w.name, v.name, len(missing), v.claim, missing[0])
	}
}

// bound is told that a claim has a volume. It may lack what was written since, if the
// user asked for it.
func (d *dataLaw) bound(claim *corev1.PersistentVolumeClaim, v *volume) {
	if claim.Spec.DataSource != nil && !isOnTrial(claim) {
		d.used.Insert(claim.Spec.DataSource.Name)
	}
	missing := d.missing(claim.Name, v.written)
	if len(missing) == 0 || !d.undone.Has(claim.Name) && !d.startsEmpty(claim, v) {
		return
	}
	d.discard(claim.Name, missing)
	d.expected[claim.Name] = slices.DeleteFunc(d.expected[claim.Name], func(write int) bool { return slices.Contains(missing, write) })
	d.undone.Delete(claim.Name)
}

func (d *dataLaw) startsEmpty(claim *corev1.PersistentVolumeClaim, v *volume) bool {
	return d.emptied && claim.Spec.DataSource == nil && len(v.written) == 0
}

// discard notes what the user gives up, and asserts that it is held nevertheless.
func (d *dataLaw) discard(claim string, writes bytes) {
	for _, write := range writes {
		if !d.isHeld(write) {
			d.world.violate("data: write %d of claim %s is given up, and no volume holds it", write, claim)
			return
		}
	}
	d.discarded[claim] = append(d.discarded[claim], writes...)
}

// isHeld reports whether a volume has a write that stays when nothing is bound to it.
func (d *dataLaw) isHeld(write int) bool {
	for name, v := range d.world.storage.disks {
		pv, there := get[*corev1.PersistentVolume](d.world.server, name)
		if there && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && slices.Contains(v.written, write) {
			return true
		}
	}
	for _, v := range d.world.storage.outside {
		if slices.Contains(v.written, write) {
			return true
		}
	}
	return false
}

// gone is told of a claim that is gone, with its volume, nil if it had none. What only
// a user has deleted starts again: with what is held for the claim, or with nothing.
func (d *dataLaw) gone(claim *corev1.PersistentVolumeClaim, v *volume) {
	if !d.deleted.Has(claim.UID) {
		d.forgotten.Insert(claim.Name)
	}
	if v == nil || d.deleted.Has(claim.UID) || d.isInFlight(v) {
		return
	}
	d.expected[claim.Name] = nil
	for _, other := range d.world.storage.disks {
		if other != v && other.claim == claim.Name && d.isInFlight(other) {
			d.expected[claim.Name] = slices.Clone(other.written)
		}
	}
}

// destroyed asserts that what is destroyed is somewhere else.
func (d *dataLaw) destroyed(claim string, writes bytes) {
	expected := sets.New(d.expected[claim]...)
	for _, write := range writes {
		if expected.Has(write) && !d.lost.Has(write) && !d.world.storage.holds(write) {
			d.world.violate("data: write %d of claim %s is in no volume and in no snapshot any more", write, claim)
			return
		}
	}
}

// isInFlight reports whether a volume is held for a claim that is being recreated.
func (d *dataLaw) isInFlight(v *volume) bool {
	held := heldState(d.world, v.name)
	return held != nil && held.ProvedTimestamp == nil
}

// heldState returns what is noted on a volume; nil if it is not held.
func heldState(w *World, volume string) *appsv1beta1.HeldVolumeState {
	pv, there := get[*corev1.PersistentVolume](w.server, volume)
	if !there || pv.Annotations[appsv1beta1.HeldVolumeStateKey] == "" {
		return nil
	}
	held := &appsv1beta1.HeldVolumeState{}
	if err := json.Unmarshal([]byte(pv.Annotations[appsv1beta1.HeldVolumeStateKey]), held); err != nil {
		w.violate("read what is noted on volume %s: %w", volume, err)
	}
	return held
}

// whyNotRecreated is whyNot for a claim that would have to be recreated.
func (l *law) whyNotRecreated(claim, template *corev1.PersistentVolumeClaim) string {
	switch {
	case l.world.hasFailed(template):
		return "it was tried"
	case l.mayStopFor(claim, template) && !l.keepsPods():
		return ""
	default:
		return "it has another class"
	}
}
