// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
)

// reasonNotObserved: the operator has not said anything of the present spec.
const reasonNotObserved = "NotObserved"

// reasonRolloutFailed: Kubernetes says that a rollout of its own has failed.
const reasonRolloutFailed = "RolloutFailed"

// summarize returns what the object itself says.
func summarize(object client.Object) Workload {
	switch typed := object.(type) {
	case *appsv1beta1.StatefulSet:
		return summarizeStatefulSet(typed)
	case *appsv1beta1.CloneSet:
		return summarizeCloneSet(typed)
	case *appsv1.Deployment:
		return summarizeNative(object, Workload{
			Replicas: ptr.Deref(typed.Spec.Replicas, 1), Updated: typed.Status.UpdatedReplicas,
			Ready: typed.Status.ReadyReplicas, Available: typed.Status.AvailableReplicas, Paused: typed.Spec.Paused,
		})
	case *appsv1.StatefulSet:
		w := Workload{
			Replicas: ptr.Deref(typed.Spec.Replicas, 1), Updated: typed.Status.UpdatedReplicas,
			Ready: typed.Status.ReadyReplicas, Available: typed.Status.AvailableReplicas,
		}
		if rolling := typed.Spec.UpdateStrategy.RollingUpdate; rolling != nil && ptr.Deref(rolling.Partition, 0) > 0 {
			w.Partition = strconv.Itoa(int(*rolling.Partition))
		}
		return summarizeNative(object, w)
	case *appsv1.DaemonSet:
		return summarizeNative(object, Workload{
			Replicas: typed.Status.DesiredNumberScheduled, Updated: typed.Status.UpdatedNumberScheduled,
			Ready: typed.Status.NumberReady, Available: typed.Status.NumberAvailable,
		})
	default:
		return Workload{Phase: Unknown, Message: fmt.Sprintf("%T is no workload", object)}
	}
}

func summarizeStatefulSet(set *appsv1beta1.StatefulSet) Workload {
	status := set.Status
	w := Workload{
		Driver: Insitu, Policy: string(set.GetPodUpdatePolicy()), Paused: set.IsPaused(),
		Replicas: set.GetReplicas(), Updated: status.UpdatedReplicas,
		Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: set.GetMaxUnavailable(),
		Kept: appsv1beta1.SumKept(status.VolumeClaims),
	}
	if partition := set.GetPartition(); partition > 0 {
		w.Partition = strconv.Itoa(int(partition))
	}
	return w.withConditions(conditionsOf(set), status.ObservedGeneration < set.Generation)
}

func summarizeCloneSet(set *appsv1beta1.CloneSet) Workload {
	status := set.Status
	w := Workload{
		Driver: Insitu, Policy: string(set.GetPodUpdatePolicy()), Paused: set.IsPaused(),
		Replicas: set.GetReplicas(), Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: set.GetMaxUnavailable(),
	}
	if partition := set.GetPartition(); partition > 0 {
		w.Partition = strconv.Itoa(int(partition))
	}
	return w.withConditions(conditionsOf(set), status.ObservedGeneration < set.Generation)
}

// conditionsOf returns the conditions of a workload of ours.
func conditionsOf(object client.Object) []metav1.Condition {
	switch typed := object.(type) {
	case *appsv1beta1.StatefulSet:
		return typed.Status.Conditions
	case *appsv1beta1.CloneSet:
		conditions := make([]metav1.Condition, 0, len(typed.Status.Conditions))
		for _, c := range typed.Status.Conditions {
			conditions = append(conditions, metav1.Condition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime,
			})
		}
		return conditions
	default:
		return nil
	}
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

// summarizeNative completes what a workload of Kubernetes says of itself.
func summarizeNative(object client.Object, w Workload) Workload {
	w.Driver, w.Policy = Kubernetes, object.GetLabels()[native.UpdatePolicyLabel]
	if w.Policy != "" {
		w.Driver = Insitu
		w.Partition = cmp.Or(w.Partition, object.GetAnnotations()[native.PartitionAnnotation])
	}
	w.Held = object.GetLabels()[native.HeldLabel] == native.Held
	if w.Held {
		return w.whileHeld(object)
	}
	return w.byKubernetes(object)
}

// whileHeld says the phase that the operator reports in an annotation.
func (w Workload) whileHeld(object client.Object) Workload {
	status, annotations := nativeStatus(object), object.GetAnnotations()
	d, isDeployment := object.(*appsv1.Deployment)
	w.Paused = annotations[native.PausedAnnotation] == "true" || isDeployment && native.IsPausedByUser(d)
	if kept, ok := annotations[native.HeldPartitionAnnotation]; ok && kept != "0" {
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
func (w Workload) byKubernetes(object client.Object) Workload {
	if isOnDelete(object) {
		return w.leftToDeletions(object)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		w.Message, w.Phase, err = rolloutStatus(object, &unstructured.Unstructured{Object: fields})
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
func (w Workload) leftToDeletions(object client.Object) Workload {
	switch {
	case observedGeneration(object) < object.GetGeneration():
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

func isOnDelete(object client.Object) bool {
	switch typed := object.(type) {
	case *appsv1.StatefulSet:
		return typed.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case *appsv1.DaemonSet:
		return typed.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	default:
		return false
	}
}

// observedGeneration returns the one that the controllers of Kubernetes have acted on.
func observedGeneration(object client.Object) int64 {
	switch typed := object.(type) {
	case *appsv1.StatefulSet:
		return typed.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		return typed.Status.ObservedGeneration
	default:
		return 0
	}
}

func rolloutStatus(object client.Object, fields *unstructured.Unstructured) (string, Phase, error) {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	switch object.(type) {
	case *appsv1.StatefulSet:
		kind.Kind = "StatefulSet"
	case *appsv1.DaemonSet:
		kind.Kind = "DaemonSet"
	}
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
