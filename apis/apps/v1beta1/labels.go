// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations on pods, in the words of OpenKruise.
const (
	// ControllerRevisionHashLabel is the name of the revision a pod runs.
	ControllerRevisionHashLabel = appsv1.ControllerRevisionHashLabelKey

	// PodNameLabel is the name of the pod, for Services that select one pod.
	PodNameLabel = appsv1.StatefulSetPodNameLabel

	// PodIndexLabel is the ordinal of the pod in decimal.
	PodIndexLabel = appsv1.PodIndexLabel

	// PodTemplateHashLabel is the hash part of the name of the revision that a
	// pod of a CloneSet runs.
	PodTemplateHashLabel = appsv1.DefaultDeploymentUniqueLabelKey

	// CloneSetInstanceIDKey is a label on the pods of a CloneSet and on their
	// claims: what tells one pod from the others, and which claims are its own.
	// The name of the pod and those of the claims end with it.
	CloneSetInstanceIDKey = "apps.kruise.io/cloneset-instance-id"

	// SpecifiedDeleteKey is a label that asks for a pod to be deleted and
	// created again, within the budget. Any value counts. On a pod that has it
	// from its template it has no effect.
	SpecifiedDeleteKey = "apps.kruise.io/specified-delete"

	// LifecycleStateKey is a label with a LifecycleStateType.
	LifecycleStateKey = "lifecycle.apps.kruise.io/state"

	// LifecycleTimestampKey is an annotation with the RFC 3339 time at which
	// LifecycleStateKey last changed.
	LifecycleTimestampKey = "lifecycle.apps.kruise.io/timestamp"

	// InPlaceUpdateStateKey is an annotation with the record of the latest
	// in-place update as JSON.
	InPlaceUpdateStateKey = "apps.kruise.io/inplace-update-state"

	// InPlaceUpdateStateKeyOld is the spelling of InPlaceUpdateStateKey on pods
	// that early OpenKruise releases left. It is neither read nor written.
	InPlaceUpdateStateKeyOld = "inplace-update-state"

	// InPlaceUpdateGraceKey is an annotation with the change that waits for the
	// end of the grace period, as JSON.
	InPlaceUpdateGraceKey = "apps.kruise.io/inplace-update-grace"

	// InPlaceUpdateGraceKeyOld is the spelling of InPlaceUpdateGraceKey on pods
	// that early OpenKruise releases left. It is neither read nor written.
	InPlaceUpdateGraceKeyOld = "inplace-update-grace"

	// RuntimeContainersMetaKey is an annotation that the OpenKruise node agent
	// leaves on pods. It is never read; the name is kept so that it does not
	// look like drift.
	RuntimeContainersMetaKey = "apps.kruise.io/runtime-containers-meta"

	// RestartCountKey is an annotation with the restart count of each container
	// before the latest in-place update.
	RestartCountKey = "apps.kruise.io/restart-count-before-last-update"

	// PodRestartCountKey is an annotation with the restart count of the pod, all
	// containers together, before the latest in-place update.
	PodRestartCountKey = "apps.kruise.io/pod-restart-count-before-last-update"

	// ContainerLaunchPriorityKey is an annotation that asks for containers to
	// start in the order of the template, with the value
	// ContainerLaunchOrdered.
	ContainerLaunchPriorityKey = "apps.kruise.io/container-launch-priority"

	// ContainerLaunchPriorityCompletedKey is an annotation that says that all
	// containers have been started in order.
	ContainerLaunchPriorityCompletedKey = "apps.kruise.io/container-launch-priority-completed"

	// ContainerLaunchOrdered is the value of ContainerLaunchPriorityKey.
	ContainerLaunchOrdered = "Ordered"

	// ContainerLaunchPriorityEnv is the environment variable that gives a
	// container its place in the launch order, as a number, the highest first.
	ContainerLaunchPriorityEnv = "KRUISE_CONTAINER_PRIORITY"
)

// Labels and annotations on workloads, claims and revisions.
const (
	// ImagePreDownloadParallelismKey is a workload annotation: how many nodes
	// pull the new image at a time.
	ImagePreDownloadParallelismKey = "apps.kruise.io/image-predownload-parallelism"

	// ImagePreDownloadTimeoutSecondsKey is a workload annotation: the time in
	// seconds that one pull may take.
	ImagePreDownloadTimeoutSecondsKey = "apps.kruise.io/image-predownload-timeout-seconds"

	// ImagePreDownloadMinUpdatedReadyPodsKey is a workload annotation: the
	// number of updated and ready pods from which on nodes pull the image.
	ImagePreDownloadMinUpdatedReadyPodsKey = "apps.kruise.io/image-predownload-min-updated-ready-pods"

	// ImagePreDownloadCreatedKey is a label on revisions whose image has been
	// sent to the nodes. The doubled "pre" is the spelling in use.
	ImagePreDownloadCreatedKey = "apps.kruise.io/pre-predownload-created"

	// ImagePreDownloadIgnoredKey is a label on revisions whose image is not to
	// be sent to the nodes.
	ImagePreDownloadIgnoredKey = "apps.kruise.io/image-predownload-ignored"

	// CloneSetScalingExcludePreparingDeleteKey is a label on CloneSets: pods that
	// a preDelete hook holds do not count as replicas, with the value true.
	CloneSetScalingExcludePreparingDeleteKey = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

	// OwnedByStatefulSetKey is an annotation on claims that follow their
	// template.
	OwnedByStatefulSetKey = "apps.kruise.io/owned-by-asts"
)

// Names of our own.
const (
	// DrainedLabel is a label on pods that are out of service: while a pod has it, an
	// admission policy (config/policies/drain.yaml) stores its condition Ready as False,
	// whatever the kubelet says. Its value lists who drains the pod, sorted, with dots
	// between: DrainedForUpdate. The drain ends when the last of them takes itself off
	// the list, and the label goes.
	DrainedLabel = "insitu.dev/drained"

	// DrainedForUpdate stands in DrainedLabel for the controller of the pod's workload.
	DrainedForUpdate = "update"

	// VolumeClaimUpdateStateKey is an annotation on claims that were changed: a
	// VolumeClaimUpdateState.
	VolumeClaimUpdateStateKey = "insitu.dev/claim-update-state"

	// HeldVolumeStateKey is an annotation on persistent volumes that a claim was
	// taken from to be recreated: a HeldVolumeState.
	HeldVolumeStateKey = "insitu.dev/held-volume"

	// HeldVolumeFinalizer keeps a held volume from being forgotten before the claim that
	// was taken from it has been recreated, and its pod is ready.
	HeldVolumeFinalizer = "insitu.dev/volume-protection"

	// ClaimLabel is a label on held volumes and on the snapshots that claims are
	// recreated from: the name of the claim. One that is too long for a label is cut,
	// and ends in a hash of the whole.
	ClaimLabel = "insitu.dev/claim"

	// ClaimNamespaceLabel is a label on held volumes: the namespace of the claim.
	ClaimNamespaceLabel = "insitu.dev/claim-namespace"

	// RecreateOfAnnotation is an annotation on snapshots that were taken to recreate
	// a claim: the UID of the claim.
	RecreateOfAnnotation = "insitu.dev/recreate-of"

	// UndoRecreateAnnotation is an annotation on claims. It asks for the volume back
	// that the claim had before it was recreated: the name of that volume, or
	// UndoRecreatePrevious for the one before. What was written since stays in the
	// newer volume, which is held.
	UndoRecreateAnnotation = "insitu.dev/undo-recreate"

	// BeginEmptyAnnotation is an annotation on claims that another client has created while
	// the one before was being recreated. With the value true the claim keeps what it has,
	// nothing as a rule; the data of the one before stays in the held volume.
	BeginEmptyAnnotation = "insitu.dev/begin-empty"

	// TakeOverAnnotation is an annotation on held volumes. It gives the volume to a
	// workload of the same name as the one that it is held for, which was deleted: the UID
	// of the new workload.
	TakeOverAnnotation = "insitu.dev/take-over"

	// RestoreFromAnnotation is an annotation on the claim templates of a
	// StatefulSet. New claims start with what is in a snapshot: a name in which
	// $(claim) stands for the name of the template, $(ordinal) for that of the pod
	// and $(workload) for the name of the set; or a JSON object of names by ordinal.
	RestoreFromAnnotation = "insitu.dev/restore-from"

	// RestoreMissingAnnotation is an annotation on claim templates beside
	// RestoreFromAnnotation. It says what becomes of a claim without its snapshot:
	// RestoreMissingRefuse, the default, or RestoreMissingEmpty.
	RestoreMissingAnnotation = "insitu.dev/restore-missing"

	// RestoredFromAnnotation is an annotation on claims: the snapshot that
	// RestoreFromAnnotation meant when the claim was made.
	RestoredFromAnnotation = "insitu.dev/restored-from"

	// RestartAnnotationPrefix and the name of a container are an annotation of pod
	// templates: the container is restarted when it is set to another value.
	RestartAnnotationPrefix = "restart.insitu.dev/"

	// PullerLabel is a label on pods that have images pulled onto their nodes, and run nothing:
	// the UID of the workload.
	PullerLabel = "insitu.dev/image-puller"

	// PullerOfPlan is the value of PullerLabel of a pod that kubectl insitu plan --pull makes.
	PullerOfPlan = "plan"

	// UpdatePolicyLabel asks for in-place updates of a native Deployment,
	// StatefulSet or DaemonSet, with InPlaceIfPossible or InPlaceOnly.
	UpdatePolicyLabel = "insitu.dev/update-policy"

	// HeldLabel marks a native workload whose own controller is held while its
	// pods are updated in place.
	HeldLabel = "insitu.dev/held"

	// PartitionAnnotation is the partition of a native workload, in decimal.
	PartitionAnnotation = "insitu.dev/partition"

	// PausedAnnotation pauses the in-place update of a native workload, with
	// the value true.
	PausedAnnotation = "insitu.dev/paused"
)

// Condition types on pods that are also readiness gates.
const (
	// InPlaceUpdateReady is False while a pod is changed in place. As a readiness
	// gate it takes the pod out of service meanwhile. New pods of sets that are
	// updated in place have it. Pods without it are drained by DrainedLabel.
	InPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"

	// KruisePodReady is False while a lifecycle hook with markPodNotReady holds
	// the pod. Its message is a JSON list of those who hold it; it is True only
	// when the list is empty.
	KruisePodReady corev1.PodConditionType = "KruisePodReady"
)

// UndoRecreatePrevious is the value of UndoRecreateAnnotation that means the volume
// which the present one has replaced.
const UndoRecreatePrevious = "previous"

// Values of RestoreMissingAnnotation.
const (
	// RestoreMissingRefuse makes neither claim nor pod as long as there is no
	// snapshot.
	RestoreMissingRefuse = "Refuse"
	// RestoreMissingEmpty makes an empty claim.
	RestoreMissingEmpty = "Empty"
)
