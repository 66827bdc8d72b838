// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// records holds what was read of records by their text: pods are planned again and again
// while their records stay the same, and reading one takes half of what a pod's plan takes.
var records = lru.New(16_384)

// readState returns the record of the last in-place update of a pod; nil if
// there was none. A record that cannot be read counts as none: the pod is judged by
// what it shows. All pods with the same text share the record: it must not be changed.
func readState(pod *corev1.Pod) (*appsv1beta1.InPlaceUpdateState, error) {
	raw, ok := pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]
	if !ok {
		return nil, nil
	}
	if known, ok := records.Get(raw); ok {
		return known.(*appsv1beta1.InPlaceUpdateState), nil
	}
	state := &appsv1beta1.InPlaceUpdateState{}
	if err := json.Unmarshal([]byte(raw), state); err != nil {
		return nil, fmt.Errorf("read annotation %s of pod %s/%s: %w",
			appsv1beta1.InPlaceUpdateStateKey, pod.Namespace, pod.Name, err)
	}
	records.Add(raw, state)
	return state, nil
}

// UpdatedInPlace reports whether a pod came to its revision in place, and not by
// being created at it.
func UpdatedInPlace(pod *corev1.Pod) bool {
	state, err := readState(pod)
	return err == nil && state != nil && state.Revision == RevisionOf(pod)
}

// isWhereCreated reports whether a pod has the revision at which it was created, as far as that is known.
// It may have been changed in place there, on request, or may have come back to it.
func isWhereCreated(pod *corev1.Pod) bool {
	state, err := readState(pod)
	return err != nil || state == nil || state.Revision != RevisionOf(pod) || state.CreatedRevision == state.Revision
}

// createdRevision returns the revision at which a pod was created; empty if its record does not tell.
func createdRevision(o *observed) string {
	if o.state.Revision == "" {
		return RevisionOf(o.pod) // it is changed for the first time
	}
	return o.state.CreatedRevision
}

// newState returns the record to write together with change.
//
// It holds an entry for every container that the change restarts, and keeps the
// entries of containers whose earlier change was not seen to complete: nothing
// that is still under way is forgotten when the next revision overtakes it.
func newState(o *observed, change Change, revision string, now time.Time) *appsv1beta1.InPlaceUpdateState {
	entries := map[string]appsv1beta1.InPlaceUpdateContainerStatus{}
	for i := range o.evidence {
		if e := &o.evidence[i]; !e.proved() || e.isOpen() {
			entry := e.entry
			if entry.Changed == nil {
				entry.Changed = ptr.To(o.state.UpdateTimestamp)
			}
			entries[e.name] = entry
		}
	}
	for _, image := range change.Images {
		entry := newEntry(o.container(image.Container), image, o.evidenceOf(image.Container))
		entry.Resizing = slices.Contains(change.Resize.Restarted(), image.Container)
		entry.Restarting = o.container(image.Container).isAboutToStart() || o.resized.Restarts && o.resized.IsUnderWay()
		entries[image.Container] = entry
	}
	state := &appsv1beta1.InPlaceUpdateState{
		Revision:              revision,
		CreatedRevision:       createdRevision(o),
		UpdateTimestamp:       metav1.NewTime(now),
		LastContainerStatuses: entries,
		EquivalentImages:      spelledOtherwise(o.state.EquivalentImages, change),
	}
	recordBatches(state, o.state, change)
	recordRequest(state, o, change)
	state.NextContainerResources = change.Shrink.Amounts().Requirements()
	state.Resized, state.ResizedFrom = stillAnswered(o, change.Resizes())
	return state
}

// stillAnswered returns what the API server made of sizes, and of which, for those
// that are not changed now.
func stillAnswered(o *observed, changed resize.Change) (stored, asked map[string]corev1.ResourceRequirements) {
	if len(o.state.Resized) == 0 {
		return nil, nil
	}
	now := changed.Amounts()
	return resize.FromRequirements(o.state.Resized, o.pod).Without(now).Requirements(),
		resize.FromRequirements(o.state.ResizedFrom, o.pod).Without(now).Requirements()
}

// spelledOtherwise returns the images that stand for others after a change.
func spelledOtherwise(before map[string]string, change Change) map[string]string {
	all := map[string]string{}
	maps.Copy(all, before)
	for _, image := range change.all() {
		delete(all, image.Container)
		if image.StandsFor != "" {
			all[image.Container] = image.StandsFor
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// newEntry records what runs in a container before it is restarted. earlier is
// the evidence of its earlier change, nil if there was none.
func newEntry(live liveContainer, change ImageChange, earlier *evidence) appsv1beta1.InPlaceUpdateContainerStatus {
	entry := appsv1beta1.InPlaceUpdateContainerStatus{
		ImageID:     live.status.ImageID,
		ContainerID: lastContainerID(live.status),
		Image:       live.image,
		EnvChanged:  change.Restart || change.Reads != "",
		SameContent: change.Restart && (!earlier.isOpen() || earlier.entry.SameContent),
	}
	if earlier == nil || earlier.isCertain() {
		return entry
	}
	entry.Image = ""
	if !earlier.proved() {
		// The kubelet may not have acted on the earlier change yet. While it fails
		// to get the image, it is not about to start a container from it.
		entry.Superseding = !earlier.imageFailed
		if entry.ContainerID == earlier.entry.ContainerID {
			entry.Image = earlier.entry.Image
		}
	}
	if earlier.isOpen() {
		entry.EnvChanged = entry.EnvChanged || earlier.entry.EnvChanged
		entry.EarlierImages = sets.List(earlier.mayRun().Delete(entry.Image))
	}
	return entry
}

// lastContainerID returns the ID of the container that runs or ran last.
func lastContainerID(status *corev1.ContainerStatus) string {
	if status.ContainerID == "" && status.LastTerminationState.Terminated != nil {
		return status.LastTerminationState.Terminated.ContainerID
	}
	return status.ContainerID
}
