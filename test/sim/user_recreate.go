// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// recreateDisturbances may happen where claims are recreated.
var recreateDisturbances = []disturbance{
	{"claims of another class", (*World).changeClass, 8},
	{"previous claims", func(w *World) { w.askClaims(w.claimsBefore) }, 6},
	{"how claims are recreated", (*World).changeRecreation, 4},
	{"earlier volume", (*World).undoAny, 3},
	{"snapshot deleted", (*World).deleteSnapshot, 2},
	{"snapshot by hand", (*World).snapshotByHand, 2},
	{"quota", (*World).toggleClaimQuota, 2},
	{"claim deleted", (*World).deleteClaim, 2},
	{"claim strategy", (*World).toggleRecreation, 2},
	{"operator killed", (*World).killManager, 4},
	{"larger claims", (*World).growClaims, 2},
	{"claims at a time", (*World).changeMaxConcurrentClaims, 1},
	{"storage class", (*World).toggleStorageClass, 1},
}

// chosenRecreations returns settings in which claims are recreated, as the choices
// have it.
func chosenRecreations(c *Choices) volumes {
	v := volumes{on: true, recreates: true, delay: c.intN(4), attaches: c.oneIn(2)}
	v.wish = claimWish{class: pick(c, recreateClasses[:3]), size: pick(c, claimSizes[:2])}
	if c.oneIn(4) {
		v.wish.second = pick(c, recreateClasses[:3])
	}
	v.strategy.MaxConcurrent = pick(c, claimLimits)
	v.strategy.Type, v.strategy.Recreate = appsv1beta1.RecreateVolumeClaimUpdateStrategyType, chosenRecreation(c)
	v.keepers = c.oneIn(2)
	return v
}

// calmRecreation ends what stands in the way of claims that are recreated.
func (w *World) calmRecreation() {
	w.server.remove(objectKey{"ResourceQuota", "storage"})
	w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) {
		s.Type, s.Recreate = appsv1beta1.RecreateVolumeClaimUpdateStrategyType, chosenRecreation(w.choices)
		s.Recreate.VolumeSnapshotClassName = pick(w.choices, snapshotClasses[:5])
	})
	wish := w.claims
	wish.class = pick(w.choices, recreateClasses[:3])
	w.askClaims(wish)
}

// recreateClasses are those that the user asks for where claims are recreated.
var recreateClasses = []string{"standard", "fast", "fast-wait", "fast", "fast-wait", "retained", "no-restore", "foreign"}

func (w *World) changeClass() {
	wish := w.claims
	wish.class = pick(w.choices, recreateClasses)
	if w.choices.oneIn(4) {
		wish.size = pick(w.choices, claimSizes[:3])
	}
	if w.choices.oneIn(8) {
		wish.shared = !wish.shared
	}
	w.askClaims(wish)
}

// changeRecreation changes how claims are recreated.
func (w *World) changeRecreation() {
	w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) {
		if s.Type == appsv1beta1.RecreateVolumeClaimUpdateStrategyType {
			s.Recreate = chosenRecreation(w.choices)
		}
	})
	w.say("user: claims are recreated as %+v", w.claimStrategy().Recreate)
}

// snapshotClasses are those that the user asks for.
var snapshotClasses = []string{"", "standard", "slow", "flaky", "sizeless", "failing", "hanging", "never-ready", "foreign", "none"}

func chosenRecreation(c *Choices) *appsv1beta1.VolumeClaimRecreateStrategy {
	retentions := []appsv1beta1.RecreateRetentionType{appsv1beta1.DeleteRecreateRetention, appsv1beta1.RetainRecreateRetention}
	strategy := &appsv1beta1.VolumeClaimRecreateStrategy{
		OldVolume: pick(c, retentions), Snapshot: pick(c, retentions), HoldSeconds: ptr.To(pick(c, []int32{30, 5, 120})),
		TimeoutSeconds: ptr.To(pick(c, []int32{90, 60, 30})),
	}
	if c.oneIn(2) {
		strategy.VolumeSnapshotClassName = pick(c, snapshotClasses)
	}
	// What is tried goes by the times, so that earlier seeds mean what they meant.
	switch [2]int32{*strategy.HoldSeconds, *strategy.TimeoutSeconds} {
	case [2]int32{120, 60}:
		strategy.Trial = appsv1beta1.SnapshotRecreateTrial
	case [2]int32{5, 30}:
		strategy.Trial = appsv1beta1.NoRecreateTrial
	}
	return strategy
}

func (w *World) toggleRecreation() {
	w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) {
		if s.Type == appsv1beta1.RecreateVolumeClaimUpdateStrategyType {
			s.Type, s.Recreate = pick(w.choices, []appsv1beta1.VolumeClaimUpdateStrategyType{
				appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType, appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
			}), nil
		} else {
			s.Type, s.Recreate = appsv1beta1.RecreateVolumeClaimUpdateStrategyType, chosenRecreation(w.choices)
		}
		w.say("user: volumeClaimUpdateStrategy %s", s.Type)
	})
}

// undo asks for an earlier volume of a claim.
func (w *World) undo(claim, volume string) {
	w.say("user: asks for volume %s of claim %s", volume, claim)
	w.law.data.undone.Insert(claim)
	mutate(w.server, claim, func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, appsv1beta1.UndoRecreateAnnotation, volume)
	})
}

func (w *World) undoAny() {
	if claim := w.anyClaim(); claim != nil {
		w.undo(claim.Name, appsv1beta1.UndoRecreatePrevious)
	}
}

// deleteSnapshot lets a user delete a snapshot.
func (w *World) deleteSnapshot() {
	snapshots := all[*snapshotv1.VolumeSnapshot](w.server)
	if len(snapshots) == 0 {
		return
	}
	name := pick(w.choices, slices.Sorted(maps.Keys(snapshots)))
	w.say("user: deletes snapshot %s", name)
	_ = w.server.delete(objectKey{"VolumeSnapshot", name}, nil) // it is there: it was just seen
}

// snapshotByHand lets a user take a snapshot of a claim.
func (w *World) snapshotByHand() {
	if claim := w.anyClaim(); claim != nil {
		w.snapshotOf(claim.Name, pick(w.choices, []string{"standard", "slow", "flaky"}))
	}
}

func (w *World) snapshotOf(claim, class string) {
	w.say("user: takes a snapshot of claim %s, of class %s", claim, class)
	_ = w.server.create(&snapshotv1.VolumeSnapshot{ // one is enough
		ObjectMeta: metav1.ObjectMeta{Name: "mine-" + claim},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}, VolumeSnapshotClassName: &class,
		},
	})
}

// toggleClaimQuota lets nothing more be stored, or lets it again.
func (w *World) toggleClaimQuota() {
	key := objectKey{"ResourceQuota", "storage"}
	if _, exists := w.server.objects[key]; exists {
		w.say("quota: is gone")
		w.server.remove(key)
		return
	}
	w.say("quota: leaves no room")
	w.limitStorage(corev1.ResourceRequestsStorage, "1Mi")
}

// limitStorage makes a quota.
func (w *World) limitStorage(name corev1.ResourceName, hard string) {
	_ = w.server.create(&corev1.ResourceQuota{ // there is none
		ObjectMeta: metav1.ObjectMeta{Name: "storage"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(hard)}},
	})
	w.storage.countQuotas()
}
