// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// objectPatch is a strategic merge patch of a pod: the narrowest one, with the
// identity of the pod as its precondition.
type objectPatch struct {
	Metadata metadataPatch `json:"metadata"`
	Spec     *specPatch    `json:"spec,omitempty"`
	Status   *statusPatch  `json:"status,omitempty"`
}

type metadataPatch struct {
	UID             string             `json:"uid"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
}

// specPatch merges its items into the lists by name, which keeps the order of
// the lists. An absent list stays as it is.
type specPatch struct {
	InitContainers []containerPatch `json:"initContainers,omitempty"`
	Containers     []containerPatch `json:"containers,omitempty"`
}

type containerPatch struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

type statusPatch struct {
	Conditions []conditionPatch `json:"conditions"`
}

// conditionPatch names every field, so that an empty one clears what was there.
type conditionPatch struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	Reason             string                  `json:"reason"`
	Message            string                  `json:"message"`
	LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
}

// Reasons of the condition InPlaceUpdateReady.
const (
	conditionReasonUpdating = "InPlaceUpdating"
	conditionReasonReady    = "InPlaceUpdateComplete"
)

// RevisionPatch returns the strategic merge patch that carries out a Patch step
// on a pod: the change, the record of what ran before, and the revision label,
// in one request. Of a MarkNotReady step it is the patch that will follow. The
// server refuses it if the pod is no longer the one that the step was decided on:
// decided on an old view of the pod, even a patch of nothing but the label would
// claim a revision that the pod does not run.
func RevisionPatch(pod *corev1.Pod, step Step, revision string) ([]byte, error) {
	record, err := json.Marshal(step.Record)
	if err != nil {
		return nil, fmt.Errorf("marshal record of in-place update: %w", err)
	}
	body := objectPatch{Metadata: metadataPatch{
		UID: string(pod.UID), ResourceVersion: pod.ResourceVersion,
		Labels:      withKey(step.Change.Labels, appsv1beta1.ControllerRevisionHashLabel, revision),
		Annotations: withKey(step.Change.Annotations, appsv1beta1.InPlaceUpdateStateKey, string(record)),
	}}
	if step.Change.Restarts() {
		body.Spec = newSpecPatch(step.Change.Images)
	}
	return json.Marshal(body)
}

func newSpecPatch(images []ImageChange) *specPatch {
	spec := &specPatch{}
	for _, image := range images {
		list := &spec.Containers
		if image.Sidecar {
			list = &spec.InitContainers
		}
		*list = append(*list, containerPatch{Name: image.Container, Image: image.To})
	}
	return spec
}

// ReadinessPatch returns the strategic merge patch of pods/status that carries
// out a MarkReady or MarkNotReady step. The server refuses to mark a pod ready
// that is no longer the one that the step was decided on: it may have been
// changed, and its container be about to stop. Marking it not ready is safe at
// any time.
func ReadinessPatch(pod *corev1.Pod, step Step, now metav1.Time) ([]byte, error) {
	gate := conditionPatch{
		Type: appsv1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue,
		Reason: conditionReasonReady, LastTransitionTime: now,
	}
	if step.Action == MarkNotReady {
		gate.Status, gate.Reason, gate.Message = corev1.ConditionFalse, conditionReasonUpdating, step.Message
	}
	metadata := metadataPatch{UID: string(pod.UID)}
	if step.Action == MarkReady {
		metadata.ResourceVersion = pod.ResourceVersion
	}
	return json.Marshal(objectPatch{Metadata: metadata, Status: &statusPatch{Conditions: []conditionPatch{gate}}})
}

func withKey(changes map[string]*string, key, value string) map[string]*string {
	all := make(map[string]*string, len(changes)+1)
	maps.Copy(all, changes)
	all[key] = &value
	return all
}
