// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
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
)

// reasonNotObserved: the operator has not said anything of the present spec.
const reasonNotObserved = "NotObserved"

// summarise returns what the object itself says.
func summarise(object client.Object) Workload {
	switch typed := object.(type) {
	case *appsv1beta1.StatefulSet:
		return summariseStatefulSet(typed)
	case *appsv1beta1.CloneSet:
		return summariseCloneSet(typed)
	case *appsv1.Deployment:
		return summariseNative(object, Workload{
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
		return summariseNative(object, w)
	case *appsv1.DaemonSet:
		return summariseNative(object, Workload{
			Replicas: typed.Status.DesiredNumberScheduled, Updated: typed.Status.UpdatedNumberScheduled,
			Ready: typed.Status.NumberReady, Available: typed.Status.NumberAvailable,
		})
	default:
		return Workload{Phase: Unknown, Message: fmt.Sprintf("%T is no workload", object)}
	}
}

func summariseStatefulSet(set *appsv1beta1.StatefulSet) Workload {
	status := set.Status
	w := Workload{
		Driver: Insitu, Policy: string(set.GetPodUpdatePolicy()), Paused: set.IsPaused(),
		Replicas: int32(len(set.GetOrdinals())), Updated: status.UpdatedReplicas, //nolint:gosec // as many as replicas
		Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: set.GetMaxUnavailable(),
	}
	if partition := set.GetPartition(); partition > 0 {
		w.Partition = strconv.Itoa(int(partition))
	}
	return w.withConditions(conditionsOf(set), status.ObservedGeneration < set.Generation)
}

func summariseCloneSet(set *appsv1beta1.CloneSet) Workload {
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
				Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime,
			})
		}
		return conditions
	default:
		return nil
	}
}

// withConditions says the phase that the conditions of a workload of ours mean. They say
// nothing of a spec that was not observed.
func (w Workload) withConditions(conditions []metav1.Condition, lags bool) Workload {
	ready := meta.FindStatusCondition(conditions, appsv1beta1.ConditionReady)
	stalled := meta.FindStatusCondition(conditions, appsv1beta1.ConditionStalled)
	said := func(phase Phase, condition *metav1.Condition) Workload {
		w.Phase, w.Reason, w.Message = phase, condition.Reason, condition.Message
		return w
	}
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue && !lags:
		return said(Stalled, stalled)
	case lags || ready == nil:
		w.Phase, w.Reason = Unknown, reasonNotObserved
		w.Message = "the operator has not said anything of the present spec yet"
		return w
	case isForOwner(ready.Reason):
		return said(Paused, ready)
	case ready.Status == metav1.ConditionTrue:
		return said(Healthy, ready)
	case ready.Reason == appsv1beta1.ReasonClaimsBlocked:
		return said(Stalled, ready)
	default:
		return said(Progressing, ready)
	}
}

// isForOwner reports whether a reason says that what is left waits for the owner.
func isForOwner(reason string) bool {
	switch reason {
	case appsv1beta1.ReasonPaused, appsv1beta1.ReasonPartitionReached, appsv1beta1.ReasonOnDelete:
		return true
	default:
		return false
	}
}

// summariseNative completes what a workload of Kubernetes says of itself.
func summariseNative(object client.Object, w Workload) Workload {
	w.Driver, w.Policy = Kubernetes, object.GetLabels()[native.UpdatePolicyLabel]
	if w.Policy != "" {
		w.Driver = Insitu
		w.Partition = object.GetAnnotations()[native.PartitionAnnotation]
	}
	w.Held = object.GetLabels()[native.HeldLabel] == native.Held
	if w.Held {
		return w.whileHeld(object)
	}
	return w.byKubernetes(object)
}

// whileHeld says the phase that the operator reports in an annotation.
func (w Workload) whileHeld(object client.Object) Workload {
	annotations, status := object.GetAnnotations(), statusOfHeld(object)
	w.Paused = annotations[native.PausedAnnotation] == "true"
	if kept, ok := annotations[native.HeldPartitionAnnotation]; ok && kept != "0" {
		w.Partition = kept
	}
	if status.State == "" {
		w.Phase, w.Reason, w.Updated = Unknown, reasonNotObserved, 0
		w.Message = "the workload is held for an update in place, and the operator has not said anything of that yet"
		return w
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

// statusOfHeld returns what the operator has reported on a held workload; the zero Status
// if that is nothing, or cannot be read.
func statusOfHeld(object client.Object) native.Status {
	status := native.Status{}
	if json.Unmarshal([]byte(object.GetAnnotations()[native.StatusAnnotation]), &status) != nil {
		return native.Status{}
	}
	return status
}

// byKubernetes says the phase as kubectl rollout status does.
func (w Workload) byKubernetes(object client.Object) Workload {
	if updatesOnDelete(object) {
		return w.onDelete()
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		w.Message, w.Phase, err = rolloutStatus(object, &unstructured.Unstructured{Object: fields})
	}
	if err != nil {
		w.Phase, w.Reason, w.Message = Stalled, "RolloutFailed", err.Error()
	}
	if w.Paused && w.Phase != Healthy {
		w.Phase, w.Reason = Paused, appsv1beta1.ReasonPaused
	}
	return w
}

// onDelete says the phase of a workload whose pods get a revision when they are deleted,
// of which kubectl rollout status says nothing.
func (w Workload) onDelete() Workload {
	switch {
	case w.Updated < w.Replicas:
		w.Phase, w.Reason = Paused, appsv1beta1.ReasonOnDelete
		w.Message = fmt.Sprintf("%d pods get the new revision when they are deleted", w.Replicas-w.Updated)
	case w.Available < w.Replicas:
		w.Phase, w.Reason, w.Message = Progressing, appsv1beta1.ReasonUpdating, fmt.Sprintf("%d of %d pods are available", w.Available, w.Replicas)
	default:
		w.Phase, w.Reason, w.Message = Healthy, appsv1beta1.ReasonAvailable, fmt.Sprintf("%d pods are available", w.Available)
	}
	return w
}

// updatesOnDelete reports whether the pods of a workload of Kubernetes are updated when
// somebody deletes them.
func updatesOnDelete(object client.Object) bool {
	switch typed := object.(type) {
	case *appsv1.StatefulSet:
		return typed.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	case *appsv1.DaemonSet:
		return typed.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	default:
		return false
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
