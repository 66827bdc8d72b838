// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/volumes"
)

// preflight returns what the controller reads to judge the claim.
func (l *life) preflight(hasSnapshot bool) PreflightFacts {
	facts := PreflightFacts{
		Claim: l.claim, Template: l.template, Strategy: l.strategy, Owner: l.owner, Volume: l.volume(l.claim.Spec.VolumeName), Held: l.heldBy(),
		ClassName: ptr.Deref(l.template.Spec.StorageClassName, ptr.Deref(l.claim.Spec.StorageClassName, "")), HasSnapshot: hasSnapshot,
		SnapshotsServed: !l.notServed, SnapshotClasses: snapshotClasses(),
		Node:       "node-1",
		OtherUsers: slices.DeleteFunc(slices.Clone(l.others), func(name string) bool { return name == "sample-0" }),
	}
	if facts.ClassName != "missing" {
		facts.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: facts.ClassName}, Provisioner: driver}
		if l.lazy {
			facts.Class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		}
	}
	return facts
}

// facts returns what the controller reads of the claim, see Facts.
func (l *life) facts() Facts {
	facts := Facts{Claim: l.claim.DeepCopy(), Template: l.template.DeepCopy(), Workload: "sample", Owner: l.owner, Strategy: l.strategy}
	if l.pod != nil {
		facts.Pod = &Pod{UID: l.pod.uid, Ready: l.pod.IsReady()}
	}
	switch {
	case l.claim == nil:
		l.observeMissing(&facts)
	case l.claim.DeletionTimestamp != nil:
		l.observeMissing(&facts)
		facts.Users = l.users()
		if attempt := volumes.RecordOf(l.claim).Recreate; attempt != nil {
			l.observeTrial(*attempt, &facts)
		}
	case l.claim.Status.Phase != corev1.ClaimBound:
		l.observeMissing(&facts)
	default:
		l.observeBound(&facts)
	}
	if claim := facts.WaitsForVolume(); claim != nil {
		facts.Events = l.eventsOf(claim)
	}
	return facts
}

func (l *life) observeMissing(facts *Facts) {
	facts.Held = l.heldFor()
	name := facts.Restored()
	if latest := InFlight(facts.Held); latest != nil {
		name = latest.State.Recreate.Snapshot
		facts.Target = l.volume(latest.State.Recreate.Volume)
	}
	facts.Snapshot = l.snapshot(name)
}

func (l *life) observeBound(facts *Facts) {
	record := volumes.RecordOf(l.claim)
	facts.Volume, facts.Held = l.volume(l.claim.Spec.VolumeName), l.heldBy()
	if held := Supplants(l.claim, l.heldFor()); held != nil && (l.pod == nil || !l.pod.scheduled) {
		facts.Held = append(facts.Held, *held)
	}
	switch {
	case record.Recreate != nil:
		facts.Snapshot = l.snapshot(record.Recreate.Snapshot)
		l.observeTrial(*record.Recreate, facts)
		if facts.Pod != nil || facts.Volume == nil {
			return
		}
		facts.Users, facts.Attaches, facts.Nodes = l.users(), l.attaches, l.nodes
		if record.Recreate.StoppedTimestamp != nil && facts.Volume.State != nil {
			facts.Judgement = ptr.To(Preflight(l.preflight(true)))
		}
	case facts.Volume != nil && facts.Volume.State != nil:
		a := facts.Volume.State.Recreate
		facts.Snapshot = l.snapshot(a.Snapshot)
		l.observeTrial(a, facts)
	default:
		if facts.Pod == nil && GivesBack(l.claim) {
			facts.Judgement = ptr.To(Preflight(l.preflight(false)))
		}
		if latest := InFlight(facts.Held); latest != nil {
			l.observeTrial(latest.State.Recreate, facts)
		}
		facts.Snapshots = l.snapshotsOf(record.HeldVolumes)
	}
}

// heldBy returns the held volumes that the record of the claim names.
func (l *life) heldBy() []Volume {
	var held []Volume
	for _, entry := range volumes.RecordOf(l.claim).HeldVolumes {
		if v := l.volume(entry.Name); v != nil && v.IsHeldFor("default", claimName) {
			held = append(held, *v)
		}
	}
	return held
}

// heldFor returns all volumes that are held for claims of the name.
func (l *life) heldFor() []Volume {
	var held []Volume
	for _, name := range slices.Sorted(maps.Keys(l.stored)) {
		if v := l.volume(name); v.IsHeldFor("default", claimName) {
			held = append(held, *v)
		}
	}
	return held
}
