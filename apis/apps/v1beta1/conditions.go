// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of a workload.
const (
	// ConditionReady is True when every pod is at the update revision (or kept
	// back by partition) and available.
	ConditionReady = "Ready"

	// ConditionProgressing is True while pods are created, deleted or updated.
	ConditionProgressing = "Progressing"

	// ConditionStalled is True when the workload does not get on without
	// a user's help.
	ConditionStalled = "Stalled"

	// ConditionFailedCreatePod is True while pods or their claims cannot be
	// created.
	ConditionFailedCreatePod = "FailedCreatePod"

	// ConditionFailedUpdatePod is True while pods cannot be updated.
	ConditionFailedUpdatePod = "FailedUpdatePod"
)

// Reasons in conditions, events and blockers. A reason means the same wherever
// it is used.
const (
	// ReasonAvailable: all pods are as wanted and available.
	ReasonAvailable = "Available"
	// ReasonScaling: pods are created or deleted to reach replicas.
	ReasonScaling = "Scaling"
	// ReasonUpdating: pods are on their way to the update revision.
	ReasonUpdating = "Updating"
	// ReasonPaused: the update is paused by its owner.
	ReasonPaused = "Paused"
	// ReasonPartitionReached: every pod that partition allows to be updated is updated.
	ReasonPartitionReached = "PartitionReached"
	// ReasonOnDelete: the new revision waits for pods to be deleted.
	ReasonOnDelete = "OnDelete"

	// ReasonSuccessfulCreate: a pod or claim was created.
	ReasonSuccessfulCreate = "SuccessfulCreate"
	// ReasonFailedCreate: a pod or claim could not be created.
	ReasonFailedCreate = "FailedCreate"
	// ReasonScaleUpLimited: pods are not created yet, because as many as
	// scaleStrategy.maxUnavailable allows are not available.
	ReasonScaleUpLimited = "ScaleUpLimited"
	// ReasonSuccessfulDelete: a pod was deleted.
	ReasonSuccessfulDelete = "SuccessfulDelete"
	// ReasonFailedDelete: a pod could not be deleted.
	ReasonFailedDelete = "FailedDelete"
	// ReasonFailedUpdateClaim: the owners of a claim could not be set.
	ReasonFailedUpdateClaim = "FailedUpdateClaim"
	// ReasonUpdatingClaim: a claim was changed, its volume follows.
	ReasonUpdatingClaim = "UpdatingClaim"
	// ReasonRecreatingClaim: a claim is recreated. The message says from what.
	ReasonRecreatingClaim = "RecreatingClaim"
	// ReasonTryingRestore: a first snapshot of a claim is restored to another one, which
	// is deleted then, while the pod runs.
	ReasonTryingRestore = "TryingRestore"
	// ReasonTakingSnapshot: a snapshot of a claim is taken, to recreate the claim.
	ReasonTakingSnapshot = "TakingSnapshot"
	// ReasonDeletingSnapshot: a snapshot of a claim is not needed any more.
	ReasonDeletingSnapshot = "DeletingSnapshot"
	// ReasonHoldingVolume: the volume of a claim that is being recreated is kept.
	ReasonHoldingVolume = "HoldingVolume"
	// ReasonReleasingVolume: a volume that was kept is its claim's again.
	ReasonReleasingVolume = "ReleasingVolume"
	// ReasonGivingVolumeBack: a volume that was kept is given back.
	ReasonGivingVolumeBack = "GivingVolumeBack"
	// ReasonDiscardingVolume: a volume that was kept long enough is deleted.
	ReasonDiscardingVolume = "DiscardingVolume"
	// ReasonDeletingClaim: a claim is deleted, to be recreated. The message says what
	// an undo discards.
	ReasonDeletingClaim = "DeletingClaim"
	// ReasonClaimNotShrunk: a template asks for less than before, and claims never
	// shrink.
	ReasonClaimNotShrunk = "ClaimNotShrunk"
	// ReasonUpdatingClaims: all pods are at the update revision, and claims are on
	// their way to what their templates say.
	ReasonUpdatingClaims = "UpdatingClaims"
	// ReasonClaimsBlocked: claims do not follow their templates. The blockers name
	// them.
	ReasonClaimsBlocked = "ClaimsBlocked"
	// ReasonConflictingController: a claim belongs to another controller.
	ReasonConflictingController = "ConflictingController"
	// ReasonUpdatingPodInPlace: a pod was changed in place, its containers are
	// being restarted where the change needs that.
	ReasonUpdatingPodInPlace = "UpdatingPodInPlace"
	// ReasonResizingPodInPlace: resources of a pod were changed in place. The
	// node is applying them, and restarts the containers that need it.
	ReasonResizingPodInPlace = "ResizingPodInPlace"
	// ReasonSuccessfulUpdatePodInPlace: a pod reached the update revision in
	// place.
	ReasonSuccessfulUpdatePodInPlace = "SuccessfulUpdatePodInPlace"
	// ReasonFailedUpdatePodInPlace: a pod could not be changed in place.
	ReasonFailedUpdatePodInPlace = "FailedUpdatePodInPlace"
	// ReasonRecreating: a pod is recreated because a field cannot change in
	// place, or a label asks for it. The message names the field or the label.
	ReasonRecreating = "Recreating"
	// ReasonRefused: the API server refuses a write: a policy, a quota, a pod
	// that is not valid.
	ReasonRefused = "Refused"
	// ReasonNotStalled: nothing needs a user's help.
	ReasonNotStalled = "NotStalled"
	// ReasonInvalidSpec: the spec cannot be carried out. The message names the
	// field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotServed: the manager has rights in namespaces only, and the kind needs others.
	ReasonNotServed = "NotServed"
)
