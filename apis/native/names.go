// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package native names the labels and annotations by which the rollouts of
// Deployments, StatefulSets and DaemonSets of Kubernetes go in place.
package native

// Labels of workloads.
const (
	// UpdatePolicyLabel opts a workload in. Its values are InPlaceIfPossible, where
	// Kubernetes recreates the pods if a change cannot be made in place, and
	// InPlaceOnly, where they stay as they are then.
	UpdatePolicyLabel = "insitu.dev/update-policy"
	// HeldLabel says that the workload is kept from recreating its pods while they
	// are updated in place. Admission policies set it, and take it off together with
	// the hold. With the value Release in a write they do so at once.
	HeldLabel = "insitu.dev/held"
)

// PartOfLabel is on the pod templates of Insitu itself: such workloads are never held.
const PartOfLabel = "insitu.dev/part-of"

// SwitchName is the ServiceAccount in the namespace of the manager without which the
// policies hold nothing more, and keep no pod out of service. What is held can still be
// released. It has the [HeartbeatAnnotation].
const SwitchName = "insitu-holds"

// HeartbeatAnnotation is on the switch, and says when the manager was there last, in the
// format of RFC 3339. The leader writes it every minute. When that write is 5 minutes old, by
// the clock of the API server, the policies begin no hold, and keep no pod out of service. A
// switch without it counts as one whose manager is there: one of release 0.1.0, which wrote
// none, and knows Deployments only that are held by a pause.
const HeartbeatAnnotation = "insitu.dev/heartbeat"

// Values of HeldLabel.
const (
	// Held: the workload is held.
	Held = "true"
	// Release asks for the end of the hold: the workload becomes what it was before,
	// and Kubernetes goes on with its rollout.
	Release = "release"
)

// Annotations that keep what a hold replaced, as text: fields of spec.strategy.rollingUpdate,
// spec.minReadySeconds and spec.progressDeadlineSeconds of a Deployment, and fields of
// spec.updateStrategy.rollingUpdate of other kinds. What was absent has none.
const (
	HeldPartitionAnnotation               = "insitu.dev/held-partition"
	HeldMaxUnavailableAnnotation          = "insitu.dev/held-max-unavailable"
	HeldMaxSurgeAnnotation                = "insitu.dev/held-max-surge"
	HeldMinReadySecondsAnnotation         = "insitu.dev/held-min-ready-seconds"
	HeldProgressDeadlineSecondsAnnotation = "insitu.dev/held-progress-deadline-seconds"
)

// HeldObservedGenerationAnnotation keeps the generation that the controller of a held
// StatefulSet or DaemonSet has seen. A policy stores the one before in
// status.observedGeneration, so that nothing takes the rollout for done. It has meaning in a
// hold only.
const HeldObservedGenerationAnnotation = "insitu.dev/held-observed-generation"

// What a held Deployment has instead of the fields that its annotations keep. With these
// values Kubernetes makes one pod of the new template, or one for a hundred replicas, which
// never counts as available, and then waits for it. Users do not spell percentages in this
// way. So a value that a write leaves as it is can be told from one that it asks for. A
// Deployment with more than 100 replicas and a number as maxSurge gets 1 instead of
// HeldMaxSurge, and one whose maxSurge is 0 is paused.
const (
	HeldMinReadySeconds         int32 = 2147483646
	HeldProgressDeadlineSeconds int32 = 2147483647
	HeldMaxUnavailable                = "00%"
	HeldMaxSurge                      = "01%"
)

// StatusAnnotation says how far the update of a held workload is, see Status.
const StatusAnnotation = "insitu.dev/status"

// PreviousRevisionAnnotation is on a ReplicaSet that has got the template of its
// Deployment because its pods were updated in place, until the ReplicaSets of the
// Deployment's history are as they should be: its UID, the name of the revision that it
// had before, its number in the history, and its change cause. Elsewhere it means
// nothing: kubectl rollout undo copies annotations.
const PreviousRevisionAnnotation = "insitu.dev/previous-revision"

// KeeperAnnotation is on the ReplicaSet of a held Deployment whose pods stay, and has its UID.
// Elsewhere it means nothing: annotations are copied.
const KeeperAnnotation = "insitu.dev/keeper"

// OptionPrefix begins the annotations that are options.
const OptionPrefix = "insitu.dev/"

// Options, as annotations of a workload. What they mean, their defaults and what is
// accepted are those of the fields of the same name in inPlaceUpdateStrategy of
// apps.kruise.io, but for DefaultGracePeriodSeconds; what is no text or number there is
// JSON here.
const (
	GracePeriodSecondsAnnotation  = "insitu.dev/gracePeriodSeconds"
	KeepReadyAnnotation           = "insitu.dev/keepReady"
	DeadlineSecondsAnnotation     = "insitu.dev/deadlineSeconds"
	PodDisruptionBudgetAnnotation = "insitu.dev/podDisruptionBudget"
	ResizeAnnotation              = "insitu.dev/resize"
	ImagePullAnnotation           = "insitu.dev/imagePull"
	// MaxUnavailableAnnotation is how many pods may be out of service at a time for an update
	// in place, instead of what the strategy says: a number from 1, or a percentage from 1%
	// to 100%, rounded up. Recreation goes by the strategy.
	MaxUnavailableAnnotation = "insitu.dev/maxUnavailable"
	// PartitionAnnotation is how many pods stay at their revision: a number or a
	// percentage, of a Deployment or a DaemonSet. A StatefulSet has its own partition.
	PartitionAnnotation = "insitu.dev/partition"
	// PausedAnnotation keeps pods from starting their update, if it is "true".
	PausedAnnotation = "insitu.dev/paused"
)

// DefaultGracePeriodSeconds is how long a pod stays out of service before it is changed, if
// GracePeriodSecondsAnnotation does not say it: nodes and load balancers take about that
// long to send no more traffic to a pod that no EndpointSlice lists as ready.
const DefaultGracePeriodSeconds int32 = 5
