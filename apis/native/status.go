// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Status is what StatusAnnotation holds, as JSON: how far the update of a held
// workload is. It goes when the workload is released.
type Status struct {
	// Revision is what the pods are updated to.
	Revision string `json:"revision,omitempty"`
	// State is where the update is.
	State State `json:"state"`
	// Message says it in a sentence, with what a user has to do, if anything.
	Message string `json:"message,omitempty"`
	// Replicas is how many pods there are to be, Updated how many run what Revision
	// says, and Available how many serve.
	Replicas  int32 `json:"replicas"`
	Updated   int32 `json:"updated"`
	Available int32 `json:"available"`
	// ProgressTime is when the last pod was updated or became available.
	ProgressTime metav1.Time `json:"progressTime,omitzero"`
	// Time is when this was said. What differs in no more than numbers is said every 5 s.
	Time metav1.Time `json:"time,omitzero"`
	// Blockers says why pods wait, at most 10, the worst first.
	Blockers []appsv1beta1.Blocker `json:"blockers,omitempty"`
}

// State is where the update of a held workload is.
type State string

// The states.
const (
	// Updating: pods are updated, or wait for each other.
	Updating State = "Updating"
	// Paused: PausedAnnotation keeps pods from starting.
	Paused State = "Paused"
	// PartitionReached: all pods are updated but those that PartitionAnnotation
	// keeps.
	PartitionReached State = "PartitionReached"
	// Stalled: a user has to do something, see Blockers.
	Stalled State = "Stalled"
	// ProgressDeadlineExceeded: there was no progress for progressDeadlineSeconds of the
	// Deployment (of other kinds, for 600 seconds and minReadySeconds) and for the time that
	// a pod may take to be drained and to stop.
	ProgressDeadlineExceeded State = "ProgressDeadlineExceeded"
	// InvalidOptions: annotations are not as accepted, see Message. Nothing is done until
	// they are. Workloads are in this state that must not be recreated: with the policy
	// InPlaceOnly, with a pause or a partition, or while a Deployment goes back. Others are
	// released.
	InvalidOptions State = "InvalidOptions"
)
