// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// nativeSpelling names the label and the annotations of workloads of Kubernetes.
var nativeSpelling = strings.NewReplacer(
	"podUpdatePolicy "+inPlaceIfPossible, "the label "+nativeapi.UpdatePolicyLabel+"="+inPlaceIfPossible,
	"resize.onDeferred Recreate", `"onDeferred":"Recreate" in the annotation `+nativeapi.ResizeAnnotation,
	"resize.onInfeasible Recreate", `"onInfeasible":"Recreate" in the annotation `+nativeapi.ResizeAnnotation,
	"resize.onError Recreate", `"onError":"Recreate" in the annotation `+nativeapi.ResizeAnnotation,
)

const inPlaceIfPossible = string(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)

// withOptions returns the view of a workload of Kubernetes with what its labels and
// annotations say, and with what is done alike for all kinds of Kubernetes.
func (v View) withOptions(kind native.Kind, object client.Object) View {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	v.Policy = labels[nativeapi.UpdatePolicyLabel]
	v.Paused = annotations[nativeapi.PausedAnnotation] == "true"
	if v.OnDelete && labels[nativeapi.HeldLabel] == "" {
		v.NotRolling = whenDeleted
	}
	v.Reported = reportedOf(object)
	v.Blockers = v.Reported.Blockers
	v.Inspect = func(ctx context.Context, eyes workload.Eyes) workload.Inspection {
		if !IsHeld(object) {
			return workload.Inspection{} // only Kubernetes decides on it
		}
		return native.Inspect(ctx, eyes, kind, object, false).Inspection
	}
	v.Resume = func() bool { return resumeNative(object) }
	return v
}

// IsHeld reports whether the controller of Kubernetes is held for an update in place.
func IsHeld(object client.Object) bool {
	return object.GetLabels()[nativeapi.HeldLabel] == nativeapi.Held
}

// reportedOf returns what the operator has reported of a workload of Kubernetes; the zero
// Status if that is nothing, or cannot be read.
func reportedOf(object client.Object) nativeapi.Status {
	status := nativeapi.Status{}
	if err := json.Unmarshal([]byte(object.GetAnnotations()[nativeapi.StatusAnnotation]), &status); err != nil {
		return nativeapi.Status{}
	}
	return status
}

// resumeNative ends the pause of what Insitu does with a workload of Kubernetes.
func resumeNative(object client.Object) bool {
	annotations := object.GetAnnotations()
	if annotations[nativeapi.PausedAnnotation] != "true" {
		return false
	}
	delete(annotations, nativeapi.PausedAnnotation)
	object.SetAnnotations(annotations)
	return true
}

// partitionInAnnotation returns the partition of a kind that has no field for it.
func partitionInAnnotation(replicas int32) Partition {
	return Partition{Annotation: nativeapi.PartitionAnnotation, TakesPercentages: true, Keeps: keeps(replicas)}
}
