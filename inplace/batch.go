// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Containers of a pod are changed in the order in which they were launched, where
// the user asks for one: those of the highest priority first, and the next when they
// are ready. Once one container of a pod has a priority, those without have 0. The
// label of the revision moves with the first batch; the record names what is still to
// come.

// launchPriority returns the place of spec.containers[i] in the launch order; nil
// if it has none.
func launchPriority(pod *corev1.Pod, i int) *int {
	if pod.Annotations[appsv1beta1.ContainerLaunchPriorityKey] == appsv1beta1.ContainerLaunchOrdered {
		priority := -i
		return &priority
	}
	return priorityIn(pod.Spec.Containers[i].Env)
}

// priorityIn reads a priority from the environment of a container. A value that
// is no number counts as none.
func priorityIn(env []corev1.EnvVar) *int {
	for _, variable := range env {
		if variable.Name != appsv1beta1.ContainerLaunchPriorityEnv {
			continue
		}
		if priority, err := strconv.Atoi(variable.Value); err == nil {
			return &priority
		}
	}
	return nil
}

// splitBatch returns the changes of the first batch, and those that come later.
func (o *observed) splitBatch(changes []ImageChange) (first, later []ImageChange) {
	var highest *int
	for _, change := range changes {
		if priority := o.container(change.Container).priority; priority != nil && (highest == nil || *priority > *highest) {
			highest = priority
		}
	}
	for _, change := range changes {
		if priority := o.container(change.Container).priority; priority == nil || *priority == *highest {
			first = append(first, change)
		} else {
			later = append(later, change)
		}
	}
	return first, later
}

// recordBatches notes in a record what is changed later, if anything is, and what
// was changed when, if it was not all at once. What changes no image is no batch, and
// keeps what is noted of the revision.
func recordBatches(state *appsv1beta1.InPlaceUpdateState, before appsv1beta1.InPlaceUpdateState, change Change) {
	if len(change.Images) == 0 {
		if before.Revision == state.Revision {
			state.ContainerBatchesRecord = before.ContainerBatchesRecord
		}
		return
	}
	goesOn := before.Revision == state.Revision && len(before.NextContainerImages) > 0
	if !goesOn && len(change.Later) == 0 {
		return
	}
	if goesOn {
		state.ContainerBatchesRecord = before.ContainerBatchesRecord
	}
	state.ContainerBatchesRecord = append(slices.Clone(state.ContainerBatchesRecord), appsv1beta1.InPlaceUpdateContainerBatch{
		Timestamp: state.UpdateTimestamp, Containers: containersOf(change.Images),
	})
	if len(change.Later) == 0 {
		return
	}
	state.NextContainerImages, state.NextContainerReads = map[string]string{}, map[string]string{}
	for _, image := range change.Later {
		state.NextContainerImages[image.Container] = image.To
		if image.Reads != "" {
			state.NextContainerReads[image.Container] = image.Reads
		}
	}
	// One of an earlier batch may have failed since.
	required := sets.New[string]()
	for _, batch := range state.ContainerBatchesRecord {
		required.Insert(batch.Containers...)
	}
	state.PreCheckBeforeNext = &appsv1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: sets.List(required)}
}

// next returns the changes that the record of a pod leaves for later, in the order
// of the containers' names.
func (o *observed) next() []ImageChange {
	if len(o.state.NextContainerImages) == 0 {
		return nil // as nearly always
	}
	var changes []ImageChange
	for _, name := range slices.Sorted(maps.Keys(o.state.NextContainerImages)) {
		live := o.container(name)
		if live.name == "" || o.state.NextContainerImages[name] == "" {
			continue
		}
		base, alias := o.state.EquivalentImages[name]
		changes = append(changes, ImageChange{
			Container: name, Sidecar: live.sidecar, From: live.image, To: o.state.NextContainerImages[name],
			Restart: alias, StandsFor: base, Reads: o.state.NextContainerReads[name], Requested: o.isRequested(name),
		})
	}
	return changes
}

// notReadyBefore returns the first container that has to be ready before the next
// ones are changed, and is not; empty if there is none.
func (o *observed) notReadyBefore() string {
	if o.state.PreCheckBeforeNext == nil {
		return ""
	}
	for _, name := range o.state.PreCheckBeforeNext.ContainersRequiredReady {
		if live := o.container(name); live.name != "" && !live.status.Ready {
			return name
		}
	}
	return ""
}
