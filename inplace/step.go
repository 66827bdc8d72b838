// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/volumes"
)

// State is where a pod is on its way to a revision. It is derived from the pod
// each time, never stored as truth.
type State string

// The states of a pod, in the order in which an update passes them.
const (
	// Settled: the pod is at its revision and ready, nothing is to be done.
	Settled State = "Settled"
	// Waiting: the pod has not started to change.
	Waiting State = "Waiting"
	// HookHeld: a lifecycle hook of the workload holds the pod.
	HookHeld State = "HookHeld"
	// Draining: the pod is being taken out of service.
	Draining State = "Draining"
	// Grace: the pod is out of service, its grace period runs.
	Grace State = "Grace"
	// UpdatingClaims: the claims of the pod are being changed.
	UpdatingClaims State = "UpdatingClaims"
	// Resizing: the sizes of the pod are being changed.
	Resizing State = "Resizing"
	// Patching: the pod may be changed now.
	Patching State = "Patching"
	// Restarting: the pod was changed, the kubelet restarts containers.
	Restarting State = "Restarting"
	// Verifying: every container was restarted, the pod is not ready yet.
	Verifying State = "Verifying"
	// Recreating: the pod is deleted, to be made again at its revision.
	Recreating State = "Recreating"
	// Stuck: the pod cannot go on by itself.
	Stuck State = "Stuck"
)

// Action is what to do with a pod now.
type Action string

// The actions. Wait is the zero Action.
const (
	// Wait: nothing to write; something has to happen first, or nothing at all.
	Wait Action = ""
	// MarkNotReady: take the pod out of service, by its readiness gate or by the label.
	MarkNotReady Action = "MarkNotReady"
	// Patch: write Step.Change and Step.Record to the pod.
	Patch Action = "Patch"
	// Resize: write the sizes in Step.Change, Grow if there is any or else Resize;
	// then, if there is a Record, do as for Patch.
	Resize Action = "Resize"
	// MarkReady: let the pod serve again; the reverse of MarkNotReady.
	MarkReady Action = "MarkReady"
	// SetLifecycle: write Step.Lifecycle to the pod.
	SetLifecycle Action = "SetLifecycle"
	// ChangeClaims: write the patches in Step.Claims to the claims of the pod.
	ChangeClaims Action = "ChangeClaims"
	// Recreate: write the patches in Step.Claims, if there are any, and delete the
	// pod.
	Recreate Action = "Recreate"
)

// Reasons of steps.
const (
	// ReasonStillReady: the pod was marked not ready, the kubelet has not
	// reported it not ready yet.
	ReasonStillReady = "StillReady"
	// ReasonEndpointsReady: an EndpointSlice still sends the pod traffic.
	ReasonEndpointsReady = "EndpointsReady"
	// ReasonCannotDrain: the API server does not keep the pod out of service, which has no
	// readiness gate.
	ReasonCannotDrain = "CannotDrain"
	// ReasonImagePull: the images of the update are being pulled onto the node of the pod.
	ReasonImagePull = "ImagePull"
	// ReasonImageNotPullable: the kubelet cannot pull an image of the update onto the node of
	// the pod, or other kubelets could not.
	ReasonImageNotPullable = "ImageNotPullable"
	// ReasonNodeUnavailable: the node of the pod is not ready, or is being maintained.
	ReasonNodeUnavailable = "NodeUnavailable"
	// ReasonGracePeriod: gracePeriodSeconds have not passed.
	ReasonGracePeriod = "GracePeriod"
	// ReasonPodNotReady: the pod was updated and is not ready.
	ReasonPodNotReady = "PodNotReady"
	// ReasonMinReadySeconds: the pod is ready, and not long enough to count as
	// available.
	ReasonMinReadySeconds = "MinReadySeconds"
	// ReasonEnded: the pod has ended for good.
	ReasonEnded = "Ended"
	// ReasonTerminating: the pod is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonTerminationOverdue: the pod should have been gone for a minute.
	ReasonTerminationOverdue = "TerminationOverdue"
	// ReasonSpecifiedDelete: a label of the pod asks for its recreation.
	ReasonSpecifiedDelete = "SpecifiedDelete"
	// ReasonPolicyReCreate: the workload asks for recreation.
	ReasonPolicyReCreate = "PolicyReCreate"
	// ReasonRecreationDenied: the pod is to be recreated, and the API server would not
	// accept a new one in its place.
	ReasonRecreationDenied = "RecreationDenied"
	// ReasonScaleIn: the pod is not wanted any more.
	ReasonScaleIn = "ScaleIn"
	// ReasonInPlaceUpdateHook: the hook inPlaceUpdate holds the pod.
	ReasonInPlaceUpdateHook = "InPlaceUpdateHook"
	// ReasonUpdatedHook: the pod was updated, and has not got back the labels and
	// finalizers of the hook inPlaceUpdate.
	ReasonUpdatedHook = "UpdatedHook"
	// ReasonPreNormalHook: the pod has not got the labels and finalizers of the
	// hook preNormal.
	ReasonPreNormalHook = "PreNormalHook"
	// ReasonPreDeleteHook: the hook preDelete holds the pod.
	ReasonPreDeleteHook = "PreDeleteHook"
	// ReasonResizeInProgress: the node is changing the sizes of the pod.
	ReasonResizeInProgress = "ResizeInProgress"
	// ReasonResizeDeferred: the node has no room for the new sizes now.
	ReasonResizeDeferred = "ResizeDeferred"
	// ReasonResizeInfeasible: the node can never hold the new sizes.
	ReasonResizeInfeasible = "ResizeInfeasible"
	// ReasonResizeError: the node fails to change the sizes, and tries again.
	ReasonResizeError = "ResizeError"
	// ReasonResizeDenied: the API server refuses the new sizes.
	ReasonResizeDenied = "ResizeDenied"
	// ReasonMaxConcurrent: maxConcurrent pods are being resized.
	ReasonMaxConcurrent = "MaxConcurrent"
	// ReasonMaxConcurrentClaims: the claims of maxConcurrent pods are being changed.
	ReasonMaxConcurrentClaims = "MaxConcurrentClaims"
	// ReasonUpdateOrder: the updates of pods with higher priorities are still to come.
	ReasonUpdateOrder = "UpdateOrder"
	// ReasonVolumeNotMountable: the pod is to be recreated, and another one could not
	// mount its volume.
	ReasonVolumeNotMountable = "VolumeNotMountable"
	// ReasonBudget: maxUnavailable pods are unavailable.
	ReasonBudget = "MaxUnavailable"
	// ReasonNewPod: a pod of the new template, made beside the others, has to serve first.
	ReasonNewPod = "NewPod"
	// ReasonNoRoom: maxUnavailable is 0, and there will be no pod more that gives room.
	ReasonNoRoom = "NoRoom"
	// ReasonDisruptionBudget: a PodDisruptionBudget does not allow it now.
	ReasonDisruptionBudget = "DisruptionBudget"
)

// Step is the next step of one pod.
type Step struct {
	Action Action
	State  State
	// Reason and Message say why, in one word and in a sentence. They are empty
	// for a settled pod.
	Reason, Message string
	// Since is when the pod came into this state; zero if the pod does not tell.
	Since time.Time
	// Until is when time alone changes the step; zero if it does not.
	Until time.Time
	// Change is set for Patch, and for the steps that lead to it.
	Change Change
	// LeadsToPatch is true when Change is what the pod needs, and the step is Patch, the Resize
	// that is made in its place, or one before them. It is false when the pod is stuck.
	LeadsToPatch bool
	// SuccessorPull is what a new pod needs that comes in the place of the one that the step deletes,
	// and that one does not have. MakePlan sets it. It is empty for other steps, and where a user
	// asks for the deletion.
	SuccessorPull Pull
	// OnRequest is true when Change is what a ContainerRecreateRequest asks of a pod that stays at its
	// revision.
	OnRequest bool
	// Record is set for Patch: what ran before, and that the pod was updated in
	// place.
	Record *appsv1beta1.InPlaceUpdateState
	// Hash is written with Record, see Revision.Hash.
	Hash string
	// Claims is set for ChangeClaims, and for the recreation of a pod for its claims.
	Claims volumes.Claims
	// TakesOutNext is true when a pod waits for its claims, and is to be taken out of
	// service then.
	TakesOutNext bool
	// Lifecycle is the state to write, with any action; empty if it stays.
	Lifecycle appsv1beta1.LifecycleStateType
	// Pending says what the pod is held for, with Lifecycle PreparingUpdate.
	Pending *appsv1beta1.PendingUpdate
	// Handler is the hook whose labels and finalizers the pod gets back; nil if it
	// has them.
	Handler *appsv1beta1.LifecycleHook
	// Denied is true when the pod stays as it is since the API server was asked and
	// refuses its change.
	Denied bool
	// Evict is true for a Recreate that goes through the eviction API, and for the
	// hold of a hook before one.
	Evict bool
	// Exact is true for a MarkNotReady that is made only if the pod is still as it was
	// when that was decided.
	Exact bool
	// NotReadyKey is what the pod is marked not ready for by KruisePodReady; empty
	// if it is not.
	NotReadyKey string
}

// IsHold reports whether the step gives a pod to a hook that will hold it.
func (s Step) IsHold() bool {
	return s.Lifecycle == appsv1beta1.LifecycleStatePreparingUpdate || s.Lifecycle == appsv1beta1.LifecycleStatePreparingDelete
}

// Deletes reports whether the step deletes a pod, or gives it to a hook that it is deleted after.
func (s Step) Deletes() bool {
	return s.Action == Recreate || s.Lifecycle == appsv1beta1.LifecycleStatePreparingDelete
}

// PullsImages reports whether the step leads to containers with other images: in the pod, or in a
// new one in its place.
func (s Step) PullsImages() bool {
	return len(s.SuccessorPull.Images) > 0 || s.LeadsToPatch && s.Change.PullsImages()
}

// disrupts reports whether the step takes an available pod out of service, now
// or as its consequence.
func (s Step) disrupts() bool {
	switch s.Action {
	case MarkNotReady, Recreate:
		return true
	case Patch:
		return s.Change.Restarts()
	case Resize:
		return len(s.Change.Grow) == 0 && s.Change.Restarts()
	case SetLifecycle:
		return s.IsHold()
	case Wait, MarkReady, ChangeClaims:
		return false
	default:
		return false
	}
}

// takesTurn reports whether the step, or what it is made for, takes an available
// pod out of service.
func (s Step) takesTurn() bool {
	return s.disrupts() || len(s.Change.Grow) > 0
}

// starts reports whether the step begins, or goes on with, what other pods may have to
// wait for.
func (s Step) starts() bool {
	return s.takesTurn() || s.Action == Resize
}

// IsResize reports whether the step is made, or waits, for the sizes of the pod.
func (s Step) IsResize() bool {
	switch s.Reason {
	case ReasonResizeInProgress, ReasonResizeDeferred, ReasonResizeInfeasible, ReasonResizeError, ReasonResizeDenied,
		string(resize.OtherQOSClass), string(resize.NodeUnsupported), string(resize.Removed):
		return true
	default:
		return s.State == Resizing
	}
}
