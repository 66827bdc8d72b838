// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// View is what the plugin reads of a workload, whatever its kind. What a kind does not have
// is empty.
type View struct {
	Kind Kind

	// Template is the pod template in the object that was read.
	Template       *corev1.PodTemplateSpec
	ClaimTemplates []corev1.PersistentVolumeClaim
	Selector       *metav1.LabelSelector
	// Policy is the pod update policy: InPlaceIfPossible, InPlaceOnly, ReCreate. It is empty
	// for a workload of Kubernetes that has not opted in.
	Policy string
	// Parameters are the paths of the places that a kind of ours has for the parameters of
	// its update strategy, the place to write to first.
	Parameters [][]string
	// Partition is how many pods stay at their revision.
	Partition Partition
	// KeepsToo says what else keeps pods at their revision; empty if nothing does.
	KeepsToo string

	// Paused: the user has paused what Insitu does. PausedInSpec: spec.paused of a
	// Deployment is true. PausedByUser: it is, and no hold has made it so.
	Paused, PausedInSpec, PausedByUser bool
	// OnDelete: the update strategy leaves it to a user to delete the pods.
	OnDelete bool
	// NotRolling says why no controller updates the pods; empty if one does.
	NotRolling string
	// Replacing: Kubernetes is in the middle of a rollout.
	Replacing bool
	// KeptBelow: Kubernetes keeps pods with a smaller ordinal as they are; nil if it keeps
	// none.
	KeptBelow *int

	// Replicas are the pods that are wanted, the others are counts of the status.
	Replicas, Updated, Ready, Available int32
	// InPlace and Recreated say how the updated pods of a kind of ours got to the revision.
	InPlace, Recreated int32
	// MaxUnavailable is the budget of a kind of ours, as a number of pods.
	MaxUnavailable int32

	// ObservedGeneration is the one that the status is about.
	ObservedGeneration int64
	// UpdateRevision and CurrentRevision are the revisions that the status names.
	UpdateRevision, CurrentRevision string
	// Conditions are those of a kind of ours.
	Conditions []metav1.Condition
	// Blockers say what pods wait for, as the operator has reported. Reported is all that it
	// has reported of a workload of Kubernetes.
	Blockers []appsv1beta1.Blocker
	Reported nativeapi.Status
	// Kept is the storage that is kept of recreated claims.
	Kept *appsv1beta1.VolumeClaimKeptStatus
	// IgnoresClaims: a change of the claim templates alone makes no revision.
	// RecreatesClaims: claims are deleted and made again where they cannot change.
	IgnoresClaims, RecreatesClaims bool

	// Inspect returns what the operator would decide.
	Inspect func(context.Context, workload.Eyes) workload.Inspection
	// Resume ends a pause in the object that was read, and reports whether there was one.
	Resume func() bool
}

// Partition is how many pods stay at their revision, and where a workload says it.
type Partition struct {
	// Paths are the fields that a new value is written to. Without any, it is written to
	// Annotation.
	Paths [][]string
	// Annotation holds the value, if it is not empty; otherwise Value is what the fields
	// hold.
	Annotation string
	Value      intstr.IntOrString
	// TakesPercentages: the value may be a percentage.
	TakesPercentages bool
	// Pods is what the fields say, as a number of pods.
	Pods int32
	// Keeps returns how many pods a value keeps.
	Keeps func(intstr.IntOrString) int
}

// nestedParameters returns the path of spec.updateStrategy.rollingUpdate.
func nestedParameters() []string {
	return []string{"spec", "updateStrategy", "rollingUpdate"}
}

// partitionIn returns the path of the partition among parameters.
func partitionIn(parameters []string) []string {
	return slices.Concat(parameters, []string{"partition"})
}

// keeps returns how many of the replicas a value keeps. A percentage is rounded up.
func keeps(replicas int32) func(intstr.IntOrString) int {
	return func(value intstr.IntOrString) int {
		kept, err := intstr.GetScaledValueFromIntOrPercent(&value, int(replicas), true)
		if err != nil {
			return int(replicas)
		}
		return min(kept, int(replicas))
	}
}

// whenDeleted is why no controller updates the pods of a workload with strategy OnDelete.
const whenDeleted = "spec.updateStrategy.type is OnDelete: each pod is updated when a user deletes it"

// Content returns what the revision of the present spec holds.
func (v View) Content() (history.Content, error) {
	if v.Kind.IsOurs() {
		return history.NewContent(*v.Template, v.ClaimTemplates)
	}
	template, err := inplace.NewTemplate(*v.Template)
	if err == nil && v.Kind.ThroughReplicaSets {
		template = template.Native()
	}
	return history.Content{Template: template}, err
}
