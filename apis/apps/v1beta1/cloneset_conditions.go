// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of a CloneSet, beside Ready, Progressing and Stalled.
const (
	// ConditionFailedScale is True while pods or their claims cannot be created
	// or deleted.
	ConditionFailedScale = "FailedScale"

	// ConditionFailedUpdate is True while pods cannot be updated.
	ConditionFailedUpdate = "FailedUpdate"
)

// Reasons of the condition Progressing of a CloneSet, in the words of OpenKruise.
const (
	// ReasonCloneSetUpdated: pods are on their way to the update revision.
	ReasonCloneSetUpdated = "CloneSetUpdated"
	// ReasonCloneSetPaused: the update is paused by its owner.
	ReasonCloneSetPaused = "CloneSetPaused"
	// ReasonProgressPartitionAvailable: every pod that partition allows to be
	// updated is updated and available.
	ReasonProgressPartitionAvailable = "ProgressPartitionAvailable"
	// ReasonCloneSetAvailable: all pods are updated and available.
	ReasonCloneSetAvailable = "CloneSetAvailable"
	// ReasonProgressDeadlineExceeded: the update did not end within
	// progressDeadlineSeconds.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// Messages of the condition Progressing of a CloneSet, in the words of
// OpenKruise, because people's scripts compare them.
const (
	// MessageCloneSetUpdated goes with ReasonCloneSetUpdated.
	MessageCloneSetUpdated = "CloneSet is progressing"
	// MessageCloneSetPaused goes with ReasonCloneSetPaused.
	MessageCloneSetPaused = "CloneSet is paused"
	// MessageProgressPartitionAvailable goes with
	// ReasonProgressPartitionAvailable.
	MessageProgressPartitionAvailable = "CloneSet has been paused due to partition ready"
	// MessageCloneSetAvailable goes with ReasonCloneSetAvailable.
	MessageCloneSetAvailable = "CloneSet is available"
	// MessageProgressDeadlineExceeded goes with ReasonProgressDeadlineExceeded. It
	// is a format: %s is the name of the update revision.
	MessageProgressDeadlineExceeded = "CloneSet revision %s has timed out progressing"
)
