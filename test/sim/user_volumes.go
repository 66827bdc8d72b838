// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// claimDisturbances may happen where claims have volumes.
var claimDisturbances = []disturbance{
	{"larger claims", (*World).growClaims, 8},
	{"other claims", (*World).changeClaimTemplates, 5},
	{"previous claims", func(w *World) { w.askClaims(w.claimsBefore) }, 5},
	{"larger claims and a revision", (*World).growAndUpdate, 5},
	{"claim strategy", (*World).toggleClaimStrategy, 2},
	{"claims at a time", (*World).changeMaxConcurrentClaims, 2},
	{"claim grown by hand", (*World).growByHand, 2},
	{"claim class by hand", (*World).modifyByHand, 1},
	{"claim deleted", (*World).deleteClaim, 2},
	{"storage quota", (*World).toggleStorageQuota, 2},
	{"storage class", (*World).toggleStorageClass, 2},
	{"resizer restarted", (*World).restartResizer, 2},
	{"resizer silent", (*World).silenceResizer, 2},
}

// askClaims makes claims what the user wants, and askAll revision and claims at once.
func (w *World) askClaims(wish claimWish) { w.askAll(w.wish, wish) }

func (w *World) askAll(r revision, wish claimWish) {
	w.say("user: revision %s, claims of %s", r.name, wish)
	if r.name != w.wish.name {
		w.previous = w.wish
	}
	if wish != w.claims {
		w.claimsBefore = w.claims
	}
	w.wish, w.claims = r, wish
	template, templates := w.settings.template(r), w.settings.volumes.templates(wish)
	if w.settings.clones.is() {
		w.changeClones(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template, set.Spec.VolumeClaimTemplates = template, templates
		})
		return
	}
	mutate(w.server, setName, func(set *appsv1beta1.StatefulSet) {
		set.Spec.Template, set.Spec.VolumeClaimTemplates = template, templates
	})
}

// larger returns a wish for claims of another size, most often of a larger one.
func (w *World) larger() claimWish {
	wish := w.claims
	i := slices.Index(claimSizes, wish.size) + 1
	if i >= len(claimSizes) || w.choices.oneIn(6) {
		i = w.choices.intN(len(claimSizes))
	}
	wish.size = claimSizes[i]
	return wish
}

func (w *World) growClaims() { w.askClaims(w.larger()) }

func (w *World) growAndUpdate() { w.askAll(pick(w.choices, w.settings.revisions()), w.larger()) }

// changeClaimTemplates changes something else about claims.
func (w *World) changeClaimTemplates() {
	wish := w.claims
	switch w.choices.intN(6) {
	default:
		wish.attributes = pick(w.choices, []string{"gold", "silver", "slow", "flaky", "refused", "none", ""})
	case 3, 4:
		switch {
		case w.settings.clones.is() && !w.settings.clones.reuse: // its pods stay with what they have
		case wish.second == "":
			wish.second = pick(w.choices, classes)
		default:
			wish.second = ""
		}
	case 5:
		wish.class = pick(w.choices, classes)
	}
	w.askClaims(wish)
}

func (w *World) toggleClaimStrategy() {
	next := appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	if w.claimStrategy().Type == next {
		next = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
	}
	w.say("user: volumeClaimUpdateStrategy %s", next)
	w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) { s.Type = next })
}

func (w *World) changeMaxConcurrentClaims() {
	limit := pick(w.choices, claimLimits)
	w.say("user: maxConcurrent of claims %v", limit)
	w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) { s.MaxConcurrent = limit })
}

func (w *World) claimStrategy() appsv1beta1.VolumeClaimUpdateStrategy {
	return w.set().Spec.VolumeClaimUpdateStrategy
}

func (w *World) changeClaimStrategy(change func(*appsv1beta1.VolumeClaimUpdateStrategy)) {
	if w.settings.clones.is() {
		w.changeClones(func(set *appsv1beta1.CloneSet) { change(&set.Spec.VolumeClaimUpdateStrategy) })
		return
	}
	mutate(w.server, setName, func(set *appsv1beta1.StatefulSet) { change(&set.Spec.VolumeClaimUpdateStrategy) })
}

// anyClaim returns one of the claims; nil if there is none.
func (w *World) anyClaim() *corev1.PersistentVolumeClaim {
	claims := all[*corev1.PersistentVolumeClaim](w.server)
	if len(claims) == 0 {
		return nil
	}
	return claims[pick(w.choices, slices.Sorted(maps.Keys(claims)))]
}

// growByHand lets a user grow a claim.
func (w *World) growByHand() {
	if claim := w.anyClaim(); claim != nil {
		w.patchClaim(claim.Name, map[string]any{"resources": map[string]any{"requests": map[string]any{
			"storage": pick(w.choices, []string{"1500Mi", "2Gi", "2500Mi", "4Gi"}),
		}}})
	}
}

// modifyByHand lets a user change the class of a claim.
func (w *World) modifyByHand() {
	if claim := w.anyClaim(); claim != nil {
		w.patchClaim(claim.Name, map[string]any{"volumeAttributesClassName": pick(w.choices, []string{"gold", "silver", "flaky", "refused"})})
	}
}

func (w *World) patchClaim(name string, spec map[string]any) {
	body, _ := json.Marshal(map[string]any{"spec": spec}) // texts marshal
	_, err := w.server.patch(patchRequest{key: objectKey{"PersistentVolumeClaim", name}, kind: types.MergePatchType, body: body})
	w.say("user: %s of claim %s: %v", body, name, err)
}

// deleteClaim lets a user delete a claim, which stays as long as a pod has it.
func (w *World) deleteClaim() {
	if claim := w.anyClaim(); claim != nil && !w.settings.clones.is() {
		w.say("user: deletes claim %s", claim.Name)
		_ = w.server.delete(objectKey{"PersistentVolumeClaim", claim.Name}, nil) // it is there: it was just seen
	}
}

func (w *World) toggleStorageQuota() {
	if w.storage.refuse != nil {
		w.say("quota: lets claims grow again")
		w.storage.refuse = nil
		return
	}
	w.say("quota: lets no claim grow")
	w.storage.refuse = refusesStorage
}

// toggleStorageClass lets a class allow expansion, or no more, or be there or not.
func (w *World) toggleStorageClass() {
	key := objectKey{"StorageClass", w.claims.class}
	_, exists := w.server.objects[key]
	switch {
	case !exists:
		w.say("user: makes class %s again", key.name)
		_ = w.server.create(w.storage.class(key.name)) // it is not there: it was just looked for
	case w.choices.oneIn(3):
		w.say("user: deletes class %s", key.name)
		w.server.remove(key)
	default:
		mutate(w.server, key.name, func(class *storagev1.StorageClass) {
			class.AllowVolumeExpansion = ptr.To(!ptr.Deref(class.AllowVolumeExpansion, false))
			w.say("user: class %s allows expansion: %t", key.name, *class.AllowVolumeExpansion)
		})
	}
}

// restartResizer lets the resizer forget what it knows.
func (w *World) restartResizer() {
	w.say("storage: the resizer starts again")
	for _, v := range w.storage.volumes {
		if v.growth.call == nil && v.change.call == nil {
			v.forget(w.clock.Now(), w.storage.claimOf(v))
		}
	}
}

// forget is what a resizer that starts again knows of a volume.
func (v *volume) forget(now time.Time, claim *corev1.PersistentVolumeClaim) {
	v.growth.queue, v.change.queue = queue{due: now}, queue{due: now}
	v.growth.final, v.growth.inUse, v.growth.slowUntil, v.change.slowUntil = false, false, time.Time{}, time.Time{}
	if claim != nil && claim.Status.ModifyVolumeStatus != nil {
		v.change.uncertain = claim.Status.ModifyVolumeStatus.Status == corev1.PersistentVolumeClaimModifyVolumeInProgress
	}
}

// silenceResizer lets the resizer do nothing for a while.
func (w *World) silenceResizer() {
	silence := w.choices.seconds(200)
	w.say("storage: the resizer does nothing for %s", silence)
	w.storage.silentUntil = w.clock.Now().Add(silence)
}

// calmStorage ends what stands in the way of claims, but for what is so by its class.
func (w *World) calmStorage() {
	if w.storage == nil {
		return
	}
	w.storage.refuse, w.storage.silentUntil = nil, time.Time{}
	for name := range w.storage.keepers {
		w.storage.keepers[name] = w.clock.Now()
	}
	for _, name := range slices.Sorted(maps.Keys(w.storage.drivers)) { // what is recreated waits for them
		if _, exists := w.server.objects[objectKey{"StorageClass", name}]; !exists {
			_ = w.server.create(w.storage.class(name)) // it is not there: it was just looked for
		}
	}
	if w.settings.volumes.recreates {
		w.calmRecreation()
		return
	}
	if w.choices.oneIn(8) {
		w.toggleClaimStrategy()
	} else if w.claimStrategy().Type != appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType {
		w.toggleClaimStrategy()
	}
	wish := w.claims
	if wish.attributes != "" && w.choices.oneIn(2) {
		wish.attributes = "gold"
	}
	w.askClaims(wish)
}
