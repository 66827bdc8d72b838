// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package builders makes the objects that tests need, valid and as small as
// possible. Each builder changes one thing and returns itself.
package builders

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// PodBuilder builds a pod.
type PodBuilder struct {
	pod corev1.Pod
}

// Pod starts a running and ready pod with one container "main", at a revision.
// Its container was started at Start, with ID "main-1" and an image ID made from
// the image.
func Pod(name, revision, image string) *PodBuilder {
	b := &PodBuilder{pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 1,
			Labels: map[string]string{"app": "sample", appsv1beta1.ControllerRevisionHashLabel: revision},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
		Status: corev1.PodStatus{
			Phase:              corev1.PodRunning,
			ObservedGeneration: 1,
			ContainerStatuses:  []corev1.ContainerStatus{RunningContainer("main", "main-1", image, Start)},
		},
	}}
	return b.Ready(true, Start)
}

// Start is when the containers of built pods were started.
var Start = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// RunningContainer is the status of a running container.
func RunningContainer(name, id, image string, started time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: name, Image: image, ImageID: ImageID(image), ContainerID: "containerd://" + id, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}},
	}
}

// ImageID is the image ID that built statuses show for an image: a digest made
// from its text, or the one that it names.
func ImageID(image string) string {
	name, digest, pinned := strings.Cut(image, "@")
	if !pinned {
		digest = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(image)))
	}
	repository, _, _ := strings.Cut(name, ":")
	if !strings.Contains(repository, "/") {
		repository = "docker.io/library/" + repository
	}
	return repository + "@" + digest
}

// Build returns the pod.
func (b *PodBuilder) Build() *corev1.Pod {
	return b.pod.DeepCopy()
}

// Gated adds the readiness gate for in-place updates. An empty status leaves the
// condition out, as in a pod that was just created.
func (b *PodBuilder) Gated(status corev1.ConditionStatus, since time.Time) *PodBuilder {
	b.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
	if status == "" {
		return b
	}
	return b.Condition(appsv1beta1.InPlaceUpdateReady, status, since)
}

// Ready sets the Ready condition.
func (b *PodBuilder) Ready(ready bool, since time.Time) *PodBuilder {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return b.Condition(corev1.PodReady, status, since)
}

// Condition sets a condition.
func (b *PodBuilder) Condition(t corev1.PodConditionType, status corev1.ConditionStatus, since time.Time) *PodBuilder {
	podStatus := &b.pod.Status
	podStatus.Conditions = slices.DeleteFunc(podStatus.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	podStatus.Conditions = append(podStatus.Conditions, corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(since)})
	return b
}

// Record sets the record of the last in-place update.
func (b *PodBuilder) Record(state appsv1beta1.InPlaceUpdateState) *PodBuilder {
	raw, err := json.Marshal(state)
	if err != nil {
		panic(err) // a struct of strings and times always marshals
	}
	return b.Annotation(appsv1beta1.InPlaceUpdateStateKey, string(raw))
}

// Annotation sets an annotation.
func (b *PodBuilder) Annotation(key, value string) *PodBuilder {
	metav1.SetMetaDataAnnotation(&b.pod.ObjectMeta, key, value)
	return b
}

// Label sets a label.
func (b *PodBuilder) Label(key, value string) *PodBuilder {
	metav1.SetMetaDataLabel(&b.pod.ObjectMeta, key, value)
	return b
}

// Generation sets the generation of the spec and the one that the kubelet has
// reported; 0 for a kubelet that reports none.
func (b *PodBuilder) Generation(live, observed int64) *PodBuilder {
	b.pod.Generation, b.pod.Status.ObservedGeneration = live, observed
	return b
}

// Status replaces the status of the container "main".
func (b *PodBuilder) Status(status corev1.ContainerStatus) *PodBuilder {
	b.pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return b
}

// Deleted marks the pod as being deleted.
func (b *PodBuilder) Deleted(at time.Time) *PodBuilder {
	deleted := metav1.NewTime(at)
	b.pod.DeletionTimestamp = &deleted
	return b
}

// With changes the pod in a way that has no builder.
func (b *PodBuilder) With(change func(*corev1.Pod)) *PodBuilder {
	change(&b.pod)
	return b
}
