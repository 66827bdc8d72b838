// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// volumes are the settings of a run in which claims have volumes. The zero value is
// one in which nothing is done about them.
type volumes struct {
	on       bool
	strategy appsv1beta1.VolumeClaimUpdateStrategy
	// wish is what the claims are to be in the beginning.
	wish claimWish
	// delay is how many seconds a program takes at most to notice something, or for
	// what it does; nodeDelay that of a kubelet that has a larger volume.
	delay, nodeDelay int
	// driver, if set, is that of the class of the claims.
	driver *driver
	// recreates: the user asks for what claims are recreated for.
	recreates bool
	// attaches: the driver attaches volumes to nodes, for everybody to see.
	attaches bool
	// keepers: others hold volumes with finalizers for a while, and people delete volumes.
	keepers bool
}

// classes are the storage classes that the user asks for; those of most runs come
// first.
var classes = []string{
	"standard", "standard", "standard", "wait", "whole", "offline", "offline", "remount", "fixed", "limited", "failing", "broken", "stalled", "stuck",
	"rounds", "node-fails", "node-never", "cool-down",
}

// claimSizes are what the user asks for, from the first.
var claimSizes = []string{"1Gi", "2Gi", "3Gi", "5Gi", "8Gi"}

// claimLimits are of how many pods claims may change at a time.
var claimLimits = []*intstr.IntOrString{nil, ptr.To(intstr.FromInt(1)), ptr.To(intstr.FromInt(2)), ptr.To(intstr.FromString("100%"))}

// chosenVolumes returns settings as the choices have it.
func chosenVolumes(c *Choices) volumes {
	v := volumes{on: true, delay: c.intN(6), nodeDelay: pick(c, []int{0, 5, 30, 90})}
	v.wish = claimWish{class: pick(c, classes), size: pick(c, claimSizes[:2]), attributes: pick(c, []string{"", "", "silver"})}
	if c.oneIn(4) {
		v.wish.second = pick(c, classes)
	}
	v.strategy.MaxConcurrent = pick(c, claimLimits)
	v.strategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	if c.oneIn(8) {
		v.strategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
	}
	return v
}

func (v volumes) String() string {
	if !v.on {
		return "no volumes"
	}
	return fmt.Sprintf("volumes: %s, strategy %s, at a time %v, noticed within %ds, by nodes within %ds, kept by others %t",
		v.wish, v.strategy.Type, v.strategy.MaxConcurrent, v.delay, v.nodeDelay, v.keepers)
}

// claimWish is what the user wants claims to be.
type claimWish struct {
	class, size string
	// attributes is their class of attributes; empty for none.
	attributes string
	// second is the storage class of a second claim; empty for none.
	second string
	// shared: many nodes may have them. block: they are no file systems.
	shared, block bool
	// restored is the annotation that says which snapshots new claims start with;
	// missing what becomes of those that there are none for.
	restored, missing string
}

func (w claimWish) String() string {
	return fmt.Sprintf("%s of class %s, attributes %q, second %q, shared %t, block %t, restored %q %s", w.size, w.class, w.attributes, w.second, w.shared, w.block, w.restored, w.missing)
}

// templates returns the templates of claims, as the user wants them.
func (v volumes) templates(wish claimWish) []corev1.PersistentVolumeClaim {
	templates := []corev1.PersistentVolumeClaim{claimTemplate("data", wish.class, wish.size)}
	if wish.attributes != "" {
		templates[0].Spec.VolumeAttributesClassName = &wish.attributes
	}
	if wish.shared {
		templates[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	if wish.block {
		templates[0].Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	}
	if wish.restored != "" {
		metav1.SetMetaDataAnnotation(&templates[0].ObjectMeta, appsv1beta1.RestoreFromAnnotation, wish.restored)
	}
	if wish.missing != "" {
		metav1.SetMetaDataAnnotation(&templates[0].ObjectMeta, appsv1beta1.RestoreMissingAnnotation, wish.missing)
	}
	if wish.second != "" {
		templates = append(templates, claimTemplate("log", wish.second, "1Gi"))
	}
	return templates
}

func claimTemplate(name, class, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To(class),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// addStorage adds what is behind claims.
func (w *World) addStorage() error {
	if !w.settings.volumes.on {
		return nil
	}
	w.storage = newStorage(w)
	if d := w.settings.volumes.driver; d != nil {
		w.storage.drivers[w.settings.volumes.wish.class] = *d
	}
	w.server.storage = w.storage
	return w.storage.createClasses()
}
