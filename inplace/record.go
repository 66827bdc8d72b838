// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// readState returns the record of the last in-place update of a pod; nil if
// there was none. A record that cannot be read is reported and counts as none:
// the pod is judged by what it shows.
func readState(pod *corev1.Pod) (*appsv1beta1.InPlaceUpdateState, error) {
	raw, ok := pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]
	if !ok {
		return nil, nil
	}
	state := &appsv1beta1.InPlaceUpdateState{}
	if err := json.Unmarshal([]byte(raw), state); err != nil {
		return nil, fmt.Errorf("read annotation %s of pod %s/%s: %w",
			appsv1beta1.InPlaceUpdateStateKey, pod.Namespace, pod.Name, err)
	}
	return state, nil
}

// UpdatedInPlace reports whether a pod came to its revision in place, and not by
// being created at it.
func UpdatedInPlace(pod *corev1.Pod) bool {
	state, err := readState(pod)
	return err == nil && state != nil && state.Revision == revisionName(pod)
}

// newState returns the record to write together with change.
//
// It holds an entry for every container that the change restarts, and keeps the
// entries of containers whose earlier change was not seen to complete: nothing
// that is still under way is forgotten when the next revision overtakes it.
func newState(pod *corev1.Pod, change Change, revision string, now time.Time) *appsv1beta1.InPlaceUpdateState {
	entries := map[string]appsv1beta1.InPlaceUpdateContainerStatus{}
	evidence := evidenceOf(pod, now)
	for name, e := range evidence {
		if !e.proved() {
			entries[name] = e.entry
		}
	}
	for _, image := range change.Images {
		entries[image.Container] = newEntry(pod, image.Container, evidence[image.Container])
	}
	return &appsv1beta1.InPlaceUpdateState{
		Revision:              revision,
		UpdateTimestamp:       metav1.NewTime(now),
		LastContainerStatuses: entries,
	}
}

// newEntry records what runs in a container before it is restarted. earlier is
// the evidence of its earlier change, nil if there was none.
func newEntry(pod *corev1.Pod, container string, earlier *evidence) appsv1beta1.InPlaceUpdateContainerStatus {
	live := findContainer(pod, container)
	entry := appsv1beta1.InPlaceUpdateContainerStatus{
		ImageID:     live.status.ImageID,
		ContainerID: lastContainerID(live.status),
		Image:       live.image,
	}
	switch {
	case earlier == nil || earlier.isCertain():
		return entry
	case earlier.proved():
		entry.Image = ""
		return entry
	}
	// The kubelet may not have acted on the earlier change yet. While it fails
	// to get the image, it is not about to start a container from it.
	entry.Superseding = !earlier.imageFailed
	entry.Image = ""
	if entry.ContainerID == earlier.entry.ContainerID {
		entry.Image = earlier.entry.Image
	}
	return entry
}

// lastContainerID returns the ID of the container that runs or ran last.
func lastContainerID(status corev1.ContainerStatus) string {
	if status.ContainerID == "" && status.LastTerminationState.Terminated != nil {
		return status.LastTerminationState.Terminated.ContainerID
	}
	return status.ContainerID
}
