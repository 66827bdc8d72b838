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
	"k8s.io/utils/ptr"

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
	// Finalizers are added to those that are there.
	Finalizers []string `json:"finalizers,omitempty"`
}

// specPatch merges containers into the lists by name. Those that are not in the patch stay as
// they are, and so does an absent list. Tolerations are replaced as a whole.
type specPatch struct {
	InitContainers []containerPatch    `json:"initContainers,omitempty"`
	Containers     []containerPatch    `json:"containers,omitempty"`
	Tolerations    []corev1.Toleration `json:"tolerations,omitempty"`
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
// on a pod: the change, the record of what ran before, and the label of the
// revision that the record names, in one request. The server refuses it if the pod
// is no longer the one that the step was decided on: decided on an old view of the
// pod, even a patch of nothing but the label would claim a revision that the pod
// does not run.
func RevisionPatch(pod *corev1.Pod, step Step) ([]byte, error) {
	record, err := json.Marshal(step.Record)
	if err != nil {
		return nil, fmt.Errorf("marshal record of in-place update: %w", err)
	}
	revision := step.Record.Revision
	metadata, err := lifecycleMetadata(pod, step, step.Record.UpdateTimestamp)
	if err != nil {
		return nil, err
	}
	metadata.ResourceVersion = pod.ResourceVersion
	metadata.Labels = withKeys(step.Change.Labels, metadata.Labels)
	if revision != "" { // a pod that no revision was made for has no such label
		metadata.Labels[appsv1beta1.ControllerRevisionHashLabel] = &revision
	}
	if step.Hash != "" {
		metadata.Labels[appsv1beta1.PodTemplateHashLabel] = &step.Hash
	}
	metadata.Annotations = withKeys(step.Change.Annotations, metadata.Annotations)
	metadata.Annotations[appsv1beta1.InPlaceUpdateStateKey] = ptr.To(string(record))
	for key, value := range restartCounts(pod, step.Change, revision) {
		metadata.Annotations[key] = &value
	}
	body := objectPatch{Metadata: metadata}
	if len(step.Change.Images)+len(step.Change.Tolerations) > 0 {
		body.Spec = newSpecPatch(pod, step.Change)
	}
	return json.Marshal(body)
}

// TrialPatch returns the patch that a step towards a revision leads to, for a dry run: with the
// containers of all batches, since what is refused for a later one is refused for
// the pod.
func TrialPatch(pod *corev1.Pod, step Step, revision string, now time.Time) ([]byte, error) {
	step.Action, step.Lifecycle = Patch, ""
	step.Change.Images, step.Change.Later = step.Change.all(), nil
	step.Record = newState(observedOf(pod, now), step.Change, revision, now)
	return RevisionPatch(pod, step)
}

// newSpecPatch returns the patch of the images of a pod, and of its tolerations. Its containers
// have the order that they have in the pod: a merge gives the lists the order of the patch, and
// the API server lets no pod change that.
func newSpecPatch(pod *corev1.Pod, change Change) *specPatch {
	spec := &specPatch{Tolerations: change.Tolerations}
	for _, container := range liveContainers(pod) {
		i := slices.IndexFunc(change.Images, func(c ImageChange) bool { return c.Container == container.name })
		if i < 0 {
			continue
		}
		image := change.Images[i]
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
// any time, unless it adds to what others have written, as the label does, or it is the
// pod's turn by its labels.
func ReadinessPatch(pod *corev1.Pod, step Step, now metav1.Time) ([]byte, error) {
	metadata, err := lifecycleMetadata(pod, step, now)
	if err != nil {
		return nil, err
	}
	conditions := gateConditions(pod, step, now)
	if step.Action == MarkReady && isDrainedByLabel(pod) {
		left := withoutDrainers(pod, func(entry string) bool { return entry == appsv1beta1.DrainedForUpdate })
		return json.Marshal(undrained(pod, metadata, left, conditions, now))
	}
	if DrainsByLabel(pod, step) {
		metadata.Labels = withKeys(metadata.Labels, map[string]*string{appsv1beta1.DrainedLabel: withDrainer(pod)})
		conditions = append(conditions, drainedCondition(pod, step.Message, now))
	}
	if step.Action == MarkReady || step.NotReadyKey != "" || step.Exact || DrainsByLabel(pod, step) {
		metadata.ResourceVersion = pod.ResourceVersion
	}
	return json.Marshal(objectPatch{Metadata: metadata, Status: &statusPatch{Conditions: conditions}})
}

// LifecyclePatch returns the strategic merge patch that carries out a SetLifecycle
// step, and whether it is one of pods/status, which takes labels and annotations,
// too. The server refuses it if the pod is no longer the one that the step was
// decided on.
func LifecyclePatch(pod *corev1.Pod, step Step, now metav1.Time) (body []byte, status bool, err error) {
	metadata, err := lifecycleMetadata(pod, step, now)
	if err != nil {
		return nil, false, err
	}
	metadata.ResourceVersion = pod.ResourceVersion
	patch := objectPatch{Metadata: metadata}
	marked := hasGate(pod, appsv1beta1.KruisePodReady) && (step.NotReadyKey != "" || isMarkedFor(pod, notReadyKeyUpdate, notReadyKeyDelete))
	if marked {
		patch.Status = &statusPatch{Conditions: []conditionPatch{withNotReady(pod, step.NotReadyKey, now)}}
	}
	body, err = json.Marshal(patch)
	return body, marked, err
}

// gateConditions returns the conditions of the gates that a step opens or closes.
func gateConditions(pod *corev1.Pod, step Step, now metav1.Time) []conditionPatch {
	var conditions []conditionPatch
	if hasGate(pod, appsv1beta1.InPlaceUpdateReady) {
		gate := conditionPatch{
			Type: appsv1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue,
			Reason: conditionReasonReady, LastTransitionTime: now,
		}
		if step.Action == MarkNotReady {
			gate.Status, gate.Reason, gate.Message = corev1.ConditionFalse, conditionReasonUpdating, step.Message
		}
		if before := condition(pod, gate.Type); before.Status == gate.Status {
			gate.LastTransitionTime = before.LastTransitionTime
		}
		conditions = append(conditions, gate)
	}
	if step.NotReadyKey != "" || step.Action == MarkReady && needsKruiseReady(pod) {
		conditions = append(conditions, withNotReady(pod, step.NotReadyKey, now))
	}
	return conditions
}

// lifecycleMetadata returns what a step says of the lifecycle of a pod, with the
// identity of the pod.
func lifecycleMetadata(pod *corev1.Pod, step Step, now metav1.Time) (metadataPatch, error) {
	metadata := metadataPatch{UID: string(pod.UID)}
	if step.Lifecycle == "" {
		return metadata, nil
	}
	metadata.Labels = map[string]*string{appsv1beta1.LifecycleStateKey: ptr.To(string(step.Lifecycle))}
	metadata.Annotations = map[string]*string{appsv1beta1.LifecycleTimestampKey: ptr.To(now.UTC().Format(time.RFC3339))}
	if step.Pending != nil {
		raw, err := json.Marshal(step.Pending)
		if err != nil {
			return metadata, fmt.Errorf("marshal pending update: %w", err)
		}
		metadata.Annotations[appsv1beta1.PendingUpdateKey] = ptr.To(string(raw))
	} else if _, there := pod.Annotations[appsv1beta1.PendingUpdateKey]; there && step.Lifecycle != appsv1beta1.LifecycleStateUpdating {
		metadata.Annotations[appsv1beta1.PendingUpdateKey] = nil
	}
	if step.Handler != nil {
		for key, value := range step.Handler.LabelsHandler {
			metadata.Labels[key] = &value
		}
		metadata.Finalizers = handlerFinalizers(step.Handler, pod)
	}
	return metadata, nil
}

// withKeys returns the keys of both, those of more where both have one.
func withKeys(all, more map[string]*string) map[string]*string {
	merged := make(map[string]*string, len(all)+len(more)+2)
	maps.Copy(merged, all)
	maps.Copy(merged, more)
	return merged
}
