// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// restartCounts returns the annotations that say how often the containers of a
// pod, and the pod as a whole, had been restarted before a change: what comes on
// top is the restart of the update, and crashes since. It is empty for a change
// that restarts nothing.
//
// Of containers that the change leaves alone, the count before their own latest
// update stays. The count of the pod is that before the first batch.
func restartCounts(pod *corev1.Pod, change Change, revision string) map[string]string {
	if !change.Restarts() {
		return nil
	}
	counts := map[string]appsv1beta1.InPlaceUpdateContainerRestartCount{}
	if raw, ok := pod.Annotations[appsv1beta1.RestartCountKey]; ok && json.Unmarshal([]byte(raw), &counts) != nil {
		clear(counts) // what another client wrote there says nothing
	}
	changed := change.restarted()
	known := map[string]appsv1beta1.InPlaceUpdateContainerRestartCount{}
	var sum int32
	for _, c := range liveContainers(pod) {
		sum += c.status.RestartCount
		if slices.Contains(changed, c.name) {
			known[c.name] = appsv1beta1.InPlaceUpdateContainerRestartCount{Revision: revision, RestartCount: c.status.RestartCount}
			continue
		}
		if count, ok := counts[c.name]; ok {
			known[c.name] = count
		}
	}
	// A map of plain values marshals.
	raw, _ := json.Marshal(known)
	annotations := map[string]string{appsv1beta1.RestartCountKey: string(raw)}
	if RevisionOf(pod) != revision {
		annotations[appsv1beta1.PodRestartCountKey] = strconv.Itoa(int(sum))
	}
	return annotations
}
