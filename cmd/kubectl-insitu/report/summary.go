// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/inplace"
)

// reasonNotObserved: the operator has not said anything of the present spec.
const reasonNotObserved = "NotObserved"

// reasonRolloutFailed: Kubernetes says that a rollout of its own has failed.
const reasonRolloutFailed = "RolloutFailed"

// summarize returns what the object itself says.
func summarize(object client.Object, view kinds.View) Workload {
	w := Workload{
		Policy: view.Policy, Paused: view.Paused,
		Replicas: view.Replicas, Updated: view.Updated, Ready: view.Ready, Available: view.Available,
		InPlace: view.InPlace, Recreated: view.Recreated, MaxUnavailable: view.MaxUnavailable, Kept: view.Kept,
	}
	if view.Partition.Pods > 0 {
		w.Partition = strconv.Itoa(int(view.Partition.Pods))
	}
	if !view.Kind.IsOurs() {
		return w.ofKubernetes(object, view)
	}
	w.Driver = Insitu
	return w.withConditions(view.Conditions, view.ObservedGeneration < object.GetGeneration())
}

// withConditions says the phase that the conditions of a workload of ours mean.
func (w Workload) withConditions(conditions []metav1.Condition, lags bool) Workload {
	ready := meta.FindStatusCondition(conditions, appsv1beta1.ConditionReady)
	stalled := meta.FindStatusCondition(conditions, appsv1beta1.ConditionStalled)
	said := func(phase Phase, condition *metav1.Condition) Workload {
		w.Phase, w.Reason, w.Message = phase, condition.Reason, condition.Message
		return w
	}
	switch {
	case lags || ready == nil:
		return w.notObserved("the operator has not said anything of the present spec yet")
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return said(Stalled, stalled)
	case isForOwner(ready):
		return said(Paused, ready)
	case ready.Status == metav1.ConditionTrue:
		return said(Healthy, ready)
	case ready.Reason == appsv1beta1.ReasonClaimsBlocked:
		return said(Stalled, ready)
	default:
		return said(Progressing, ready)
	}
}

// isForOwner reports whether what is left waits for the owner. A partition is reached, and
// what is updated by deletions is done, when the pods that have the new revision are
// available, too.
func isForOwner(ready *metav1.Condition) bool {
	switch ready.Reason {
	case appsv1beta1.ReasonPaused:
		return true
	case appsv1beta1.ReasonPartitionReached, appsv1beta1.ReasonOnDelete:
		return ready.Status == metav1.ConditionTrue
	default:
		return false
	}
}

// notObserved says that what the operator has reported is not of what is wanted now.
func (w Workload) notObserved(message string) Workload {
	w.Phase, w.Reason, w.Message = Unknown, reasonNotObserved, message
	return w
}

// ofKubernetes completes what a workload of Kubernetes says of itself.
func (w Workload) ofKubernetes(object client.Object, view kinds.View) Workload {
	w.Driver = Kubernetes
	if w.Policy != "" {
		w.Driver = Insitu
		w.Partition = cmp.Or(w.Partition, object.GetAnnotations()[native.PartitionAnnotation])
	}
	w.Held = kinds.IsHeld(object)
	if w.Held {
		return w.whileHeld(object, view)
	}
	return w.byKubernetes(object, view)
}

// whileHeld says the phase that the operator reports in an annotation.
func (w Workload) whileHeld(object client.Object, view kinds.View) Workload {
	status := view.Reported
	w.Paused = view.Paused || view.PausedByUser
	if kept, ok := object.GetAnnotations()[native.HeldPartitionAnnotation]; ok && kept != "0" {
		w.Partition = kept
	}
	if status.State == "" {
		w.Updated = 0
		return w.notObserved("the workload is held for an update in place, and the operator has not said anything of that yet")
	}
	w.Updated, w.Available = status.Updated, status.Available
	w.Reason, w.Message = string(status.State), status.Message
	switch status.State {
	case native.Updating:
		w.Phase = Progressing
	case native.Paused, native.PartitionReached:
		w.Phase = Paused
	case native.Stalled, native.ProgressDeadlineExceeded, native.InvalidOptions:
		w.Phase = Stalled
	default:
		w.Phase = Unknown
	}
	return w
}

// byKubernetes says the phase as kubectl rollout status does. That knows neither pauses
// nor what is left to the owner.
func (w Workload) byKubernetes(object client.Object, view kinds.View) Workload {
	w.Paused = view.PausedInSpec
	if view.OnDelete {
		return w.leftToDeletions(view.ObservedGeneration < object.GetGeneration())
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		w.Message, w.Phase, err = rolloutStatus(view.Kind, &unstructured.Unstructured{Object: fields})
	}
	switch {
	case err != nil:
		w.Phase, w.Reason, w.Message = Stalled, reasonRolloutFailed, err.Error()
	case w.Paused && w.Phase != Healthy:
		w.Phase, w.Reason = Paused, appsv1beta1.ReasonPaused
	case w.Partition != "" && w.Phase == Healthy && w.Updated < w.Replicas:
		w.Phase, w.Reason = Paused, appsv1beta1.ReasonPartitionReached
	}
	return w
}

// leftToDeletions says the phase of a workload whose pods are updated when they are
// deleted. kubectl rollout status knows none.
func (w Workload) leftToDeletions(lags bool) Workload {
	switch {
	case lags:
		w.Phase, w.Message = Progressing, "waiting for the present spec to be observed"
	case w.Updated < w.Replicas:
		w.Phase, w.Reason = Paused, appsv1beta1.ReasonOnDelete
		w.Message = inplace.WhenDeleted(w.Replicas - w.Updated)
	case w.Ready < w.Replicas:
		w.Phase, w.Message = Progressing, fmt.Sprintf("%d of %d pods are ready", w.Ready, w.Replicas)
	default:
		w.Phase, w.Message = Healthy, inplace.PodsThat(w.Ready, "is", "are")+" ready"
	}
	return w
}

func rolloutStatus(kind kinds.Kind, fields *unstructured.Unstructured) (string, Phase, error) {
	viewer, err := polymorphichelpers.StatusViewerFor(kind.GroupKind())
	if err != nil {
		return "", Unknown, err
	}
	message, done, err := viewer.Status(fields, 0)
	switch {
	case err != nil:
		return "", Stalled, errors.New(err.Error())
	case done:
		return trim(message), Healthy, nil
	default:
		return trim(message), Progressing, nil
	}
}
