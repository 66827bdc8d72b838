// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// Words in advice that stand for a name, see [AdviceOn].
const (
	workloadWord  = "KIND/NAME"
	podWord       = "POD"
	claimWord     = "CLAIM"
	namespaceWord = "NAMESPACE"
)

// Advice that holds for many reasons.
const (
	nothing     = "Nothing: it ends by itself"
	nothingDone = "Nothing: it was done"
	waitTurn    = "Nothing: its turn comes when those before it are done"
	lookAtClaim = "See what the driver says of the claim: `kubectl describe pvc CLAIM`"
	freeHook    = "Have the owner of the hook take the labels and finalizers in the message off the pod: `kubectl get pod POD --show-labels`"
	giveHook    = "Have the owner of the hook put back the labels and finalizers in the message: `kubectl get pod POD --show-labels`"
	allowOrUndo = "Allow recreation with podUpdatePolicy InPlaceIfPossible, or go back: `kubectl insitu undo KIND/NAME`"
	smallerSize = "Ask for sizes that fit, have such pods recreated by resize.onInfeasible Recreate, or go back: `kubectl insitu undo KIND/NAME`"
	fixRecreate = "Fix what the message says, then change volumeClaimUpdateStrategy.recreate to have it tried again, or put the claim template back"
)

// advice says what to do about each reason of ours.
var advice = map[string]string{
	appsv1beta1.ReasonAvailable:                  "Nothing: all is as wanted",
	appsv1beta1.ReasonScaling:                    nothing,
	appsv1beta1.ReasonUpdating:                   nothing,
	appsv1beta1.ReasonPaused:                     "Let it go on when you are ready: `kubectl insitu resume KIND/NAME`",
	appsv1beta1.ReasonPartitionReached:           "Lower the partition when you are ready: `kubectl insitu promote KIND/NAME`",
	appsv1beta1.ReasonOnDelete:                   "Delete the pods that are to have the new revision, one after the other: `kubectl delete pod POD`",
	appsv1beta1.ReasonSuccessfulCreate:           nothingDone,
	appsv1beta1.ReasonFailedCreate:               "Fix what the API server says in the message, such as a quota or a policy; it is tried again by itself",
	appsv1beta1.ReasonScaleUpLimited:             "Nothing, if pods become available; else see what they wait for: `kubectl insitu why KIND/NAME`",
	appsv1beta1.ReasonSuccessfulDelete:           nothingDone,
	appsv1beta1.ReasonFailedDelete:               "Fix what the API server says in the message; it is tried again by itself",
	appsv1beta1.ReasonFailedUpdateClaim:          "Fix what the API server says in the message; it is tried again by itself",
	appsv1beta1.ReasonUpdatingClaim:              nothing,
	appsv1beta1.ReasonRecreatingClaim:            nothing,
	appsv1beta1.ReasonTryingRestore:              nothing,
	appsv1beta1.ReasonTakingSnapshot:             nothing,
	appsv1beta1.ReasonDeletingSnapshot:           nothing,
	appsv1beta1.ReasonHoldingVolume:              nothing,
	appsv1beta1.ReasonReleasingVolume:            nothing,
	appsv1beta1.ReasonGivingVolumeBack:           nothing,
	appsv1beta1.ReasonDiscardingVolume:           nothing,
	appsv1beta1.ReasonDeletingClaim:              nothing,
	appsv1beta1.ReasonClaimNotShrunk:             "Nothing: claims keep what they have, and new ones come up at the new size",
	appsv1beta1.ReasonUpdatingClaims:             nothing,
	appsv1beta1.ReasonClaimsBlocked:              "See which claims do not follow, and why: `kubectl insitu why KIND/NAME`",
	appsv1beta1.ReasonConflictingController:      "Delete or rename the claim in the message, which belongs to another controller, or rename the workload",
	appsv1beta1.ReasonUpdatingPodInPlace:         nothing,
	appsv1beta1.ReasonResizingPodInPlace:         nothing,
	appsv1beta1.ReasonSuccessfulUpdatePodInPlace: nothingDone,
	appsv1beta1.ReasonFailedUpdatePodInPlace:     "Fix what the API server says in the message; it is tried again by itself",
	appsv1beta1.ReasonRecreating:                 nothing,
	appsv1beta1.ReasonRefused:                    "Fix what the API server says in the message: a policy, a quota or the template; it is tried again by itself",
	appsv1beta1.ReasonNotStalled:                 "Nothing: all goes on by itself",
	appsv1beta1.ReasonNotServed:                  "Give the manager the rights of the whole cluster (scope Cluster), or run the workload as another kind",
	appsv1beta1.ReasonInvalidSpec:                "Correct the field that the message names: `kubectl edit KIND/NAME`",

	appsv1beta1.ReasonCloneSetUpdated:            nothing,
	appsv1beta1.ReasonCloneSetPaused:             "Let it go on when you are ready: `kubectl insitu resume KIND/NAME`",
	appsv1beta1.ReasonProgressPartitionAvailable: "Lower the partition when you are ready: `kubectl insitu promote KIND/NAME`",
	appsv1beta1.ReasonCloneSetAvailable:          "Nothing: all is as wanted",
	appsv1beta1.ReasonProgressDeadlineExceeded:   "See what the pods wait for, and fix that or go back: `kubectl insitu why KIND/NAME`; `kubectl insitu undo KIND/NAME`",

	inplace.ReasonNotObserved:         "Nothing, for some seconds; if it stays, look at the kubelet of the pod's node: `kubectl get pod POD -o wide`",
	inplace.ReasonContainerRestarting: "Nothing, for some seconds; if it stays, see what the pod says: `kubectl describe pod POD`",
	inplace.ReasonSettling:            "Nothing: it ends at the time in the message",
	inplace.ReasonNotRestarted:        "Delete the pod, so that its containers start with their new environment: `kubectl delete pod POD`",
	inplace.ReasonNextBatch:           "Nothing, if the container in the message becomes ready; else see its logs: `kubectl logs POD --all-containers`",

	inplace.ReasonRevisionUnknown:       allowOrUndo,
	inplace.ReasonContainersChanged:     allowOrUndo,
	inplace.ReasonFieldImmutable:        allowOrUndo,
	inplace.ReasonRunsOnce:              allowOrUndo,
	inplace.ReasonEnvFromMetadata:       allowOrUndo,
	inplace.ReasonInjectionChanged:      "Nothing, with InPlaceIfPossible: pods are recreated; else delete those that are to have what a new pod gets: `kubectl delete pod POD`",
	inplace.ReasonClaimTemplatesChanged: "Delete the pods one after the other, if their claims may go with them, or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonResizeUnsupported:     "Allow recreation with podUpdatePolicy InPlaceIfPossible, or take a Kubernetes that serves pods/resize",
	inplace.ReasonAdmissionDenied:       "Fix the policy or webhook that the message names, or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonAdmissionUnknown:      "Nothing, if the API server and its webhooks answer again; else fix the webhook that the message names",

	inplace.ReasonStillReady:          "Nothing, for some seconds; if it stays, look at the kubelet of the pod's node: `kubectl get pod POD -o wide`",
	inplace.ReasonEndpointsReady:      "Nothing, for some seconds; if it stays, see who sends the pod traffic: `kubectl get endpointslices -n NAMESPACE`",
	inplace.ReasonGracePeriod:         nothing,
	inplace.ReasonCannotDrain:         "Have the policy insitu-drain installed for the namespace, with its switch (drainPolicy of the chart); or name the containers in keepReady, or allow recreation with podUpdatePolicy InPlaceIfPossible",
	inplace.ReasonImagePull:           "Nothing, if the pull in the message ends; else see the pod that pulls: `kubectl get pods -n NAMESPACE -l insitu.dev/image-puller`",
	inplace.ReasonImageNotPullable:    "Fix the image, or what the registry asks for, it goes on by itself; or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonNodeUnavailable:     "Nothing, if the node in the message becomes ready, or its maintenance ends; else fix the node, or delete it if it is gone for good: `kubectl get nodes`",
	inplace.ReasonPodNotReady:         "Nothing, if it becomes ready; else see why not, or go back: `kubectl describe pod POD`; `kubectl insitu undo KIND/NAME`",
	inplace.ReasonMinReadySeconds:     nothing,
	inplace.ReasonEnded:               nothing,
	inplace.ReasonTerminating:         nothing,
	inplace.ReasonTerminationOverdue:  "Follow the message: force-delete the pod only when its node is known to be gone, or have its finalizers taken off",
	inplace.ReasonSpecifiedDelete:     nothing,
	inplace.ReasonPolicyReCreate:      "Nothing; to have such changes made in place, set podUpdatePolicy InPlaceIfPossible",
	inplace.ReasonRecreationDenied:    "Correct what the API server says in the message: the template, a policy, or what it names and is not there; or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonScaleIn:             nothing,
	inplace.ReasonInPlaceUpdateHook:   freeHook + "; or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonPreDeleteHook:       freeHook,
	inplace.ReasonUpdatedHook:         giveHook,
	inplace.ReasonPreNormalHook:       giveHook,
	inplace.ReasonResizeInProgress:    "Nothing, for some seconds; a lower memory limit is applied when less memory is in use",
	inplace.ReasonResizeDeferred:      "Make room on the node, have such pods recreated by resize.onDeferred Recreate, or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonResizeInfeasible:    smallerSize,
	inplace.ReasonResizeError:         "See what the node says, and have such pods recreated by resize.onError Recreate, or go back: `kubectl describe pod POD`; `kubectl insitu undo KIND/NAME`",
	inplace.ReasonResizeDenied:        "Fix the quota, the limit range or the policy that the message names, or go back: `kubectl insitu undo KIND/NAME`",
	inplace.ReasonMaxConcurrent:       waitTurn,
	inplace.ReasonMaxConcurrentClaims: waitTurn,
	inplace.ReasonUpdateOrder:         waitTurn,
	inplace.ReasonVolumeNotMountable:  "Fix the volume first, since another pod could not mount it: `kubectl describe pvc CLAIM`",
	inplace.ReasonBudget:              waitTurn,
	inplace.ReasonNewPod:              "Nothing, if the new pod comes up; else see why it does not, or go back: `kubectl describe pod POD`; `kubectl insitu undo KIND/NAME`",
	inplace.ReasonNoRoom:              "Allow 1 pod to be unavailable, or have the pods recreated, or go back: `kubectl edit KIND/NAME`; `kubectl label KIND/NAME --overwrite insitu.dev/update-policy=InPlaceIfPossible`; `kubectl insitu undo KIND/NAME`",
	inplace.ReasonDisruptionBudget:    "Nothing, if the budget allows it again; else see which pods are not ready: `kubectl get poddisruptionbudgets -n NAMESPACE`",

	string(resize.Removed):         allowOrUndo,
	string(resize.OtherQOSClass):   allowOrUndo,
	string(resize.NodeUnsupported): "Have such pods recreated by resize.onError Recreate, or move them to nodes that can resize pods",

	volumes.ReasonClaimMissing:           nothing,
	volumes.ReasonClaimTerminating:       "Nothing, if the claim is not in use; else see what keeps it: `kubectl describe pvc CLAIM`",
	volumes.ReasonClaimNotBound:          lookAtClaim,
	volumes.ReasonClaimChanging:          nothing,
	volumes.ReasonClaimExpanding:         "Nothing, for some minutes; if it stays, see what the driver says: `kubectl describe pvc CLAIM`",
	volumes.ReasonClaimModifying:         "Nothing, for some minutes; if it stays, see what the driver says: `kubectl describe pvc CLAIM`",
	volumes.ReasonVolumeInUse:            "Let its pod be recreated with podUpdatePolicy InPlaceIfPossible, or delete the pod yourself: `kubectl delete pod POD`",
	volumes.ReasonVolumeNotRemounted:     "Let its pod be recreated with podUpdatePolicy InPlaceIfPossible, or delete the pod yourself: `kubectl delete pod POD`",
	volumes.ReasonClaimImmutable:         "Put the claim template back, or have such claims recreated with volumeClaimUpdateStrategy Recreate",
	volumes.ReasonClaimControlled:        "Take the other controller off the claim's metadata.ownerReferences, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonExpansionNotAllowed:    "Set allowVolumeExpansion: true in the storage class, if its driver can, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonStorageClassMissing:    "Create the storage class that the message names, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonAttributesClassMissing: "Create the VolumeAttributesClass that the message names, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonClaimRefused:           "Fix the quota or the policy that the message names, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonExpansionInfeasible:    "Ask for a smaller size, above the present capacity, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonExpansionFailed:        lookAtClaim,
	volumes.ReasonModificationInfeasible: "Name another VolumeAttributesClass, or go back: `kubectl insitu undo KIND/NAME`",
	volumes.ReasonModificationFailed:     lookAtClaim,
	volumes.ReasonClaimOverdue:           "See the events of the claim, and whether the external-resizer of its driver runs: `kubectl describe pvc CLAIM`",

	recreate.ReasonClaimRecreating:   nothing,
	recreate.ReasonVolumeAttached:    "Nothing, for some minutes; if it stays, see which node has the volume: `kubectl get volumeattachments`",
	recreate.ReasonClaimInUse:        "Nothing, if the pod in the message ends; delete it if it is not one of the workload's: `kubectl describe pvc CLAIM`",
	recreate.ReasonSnapshotNotReady:  "Nothing, for some minutes; if it stays, see what the driver says: `kubectl get volumesnapshots -n NAMESPACE`",
	recreate.ReasonVolumeNotReady:    "Nothing, for some minutes; if it stays, see what the driver says: `kubectl describe pvc CLAIM`",
	recreate.ReasonVolumeNotRestored: "Have the old volume back, which has the data: `kubectl annotate pvc CLAIM insitu.dev/undo-recreate=previous`; or go on without it: `kubectl annotate pvc CLAIM insitu.dev/begin-empty=true`",
	recreate.ReasonHeldForAnother:    "Take the volume over with the command in the message, or create the claim yourself with annotation insitu.dev/begin-empty=true",
	recreate.ReasonClaimRewritten:    "Change the policy or webhook that changes claims, or ask for what it makes of them in the claim template; then change volumeClaimUpdateStrategy.recreate to have it tried again: `kubectl edit KIND/NAME`",
	recreate.ReasonRecreateTimedOut:  fixRecreate,
	recreate.ReasonDriverFails:       fixRecreate,
	recreate.ReasonSnapshotLost:      fixRecreate,
	recreate.ReasonSnapshotTaken:     fixRecreate,
	recreate.ReasonRecreateUndone:    "Put the claim template back to what the old volume is, or change volumeClaimUpdateStrategy.recreate to have it tried again",
	recreate.ReasonVolumeLost:        "Have the volume Released or Available, with reclaim policy Retain and the claimRef of its claim: `kubectl get pv -L insitu.dev/claim`",

	recreate.ReasonRecreateNotPermitted:  "Put the claim template back, or ask for a manager with rbac.scope Cluster: `kubectl insitu undo KIND/NAME`",
	recreate.ReasonSnapshotsNotServed:    "Install the CRDs and the controller of external-snapshotter, or put the claim template back",
	recreate.ReasonClaimHasFinalizers:    "Have the finalizer in the message taken off the claim: `kubectl get pvc CLAIM -o yaml`",
	recreate.ReasonVolumeTerminating:     "Copy the data away: the volume is being deleted, and goes with its claim",
	recreate.ReasonVolumeNotCSI:          "Put the claim template back, or start empty with recreate.withoutSnapshot Empty",
	recreate.ReasonSnapshotClassMissing:  "Create a VolumeSnapshotClass of the driver, or name one in volumeClaimUpdateStrategy.recreate: `kubectl get volumesnapshotclasses`",
	recreate.ReasonSnapshotClassMismatch: "Name a VolumeSnapshotClass of the claim's driver in volumeClaimUpdateStrategy.recreate: `kubectl get volumesnapshotclasses`",
	recreate.ReasonDriverDiffers:         "Choose a storage class of the same driver, or start empty with recreate.withoutSnapshot Empty",
	recreate.ReasonVolumeModeChanged:     "Put the volume mode back, or start empty with recreate.withoutSnapshot Empty",
	recreate.ReasonQuotaExceeded:         "Raise the quota or make room in it: `kubectl describe resourcequota -n NAMESPACE`",
	recreate.ReasonCapacityTooSmall:      "Make room in the storage; it is looked for again by itself",
	recreate.ReasonTopologyDiffers:       "Choose a storage class that makes volumes where the old one is, or put the claim template back",
	recreate.ReasonRecreateFailedBefore:  fixRecreate,
	recreate.ReasonUndoWaits:             "Nothing, if the pod may be moved; else end the pause, or lower the partition: `kubectl insitu promote KIND/NAME`",
	recreate.ReasonUndoRefused:           "Name a volume that is held of this claim: `kubectl get pv -L insitu.dev/claim`",
	recreate.ReasonRestoreMissing:        "Create the snapshot that the message names, or correct the annotation of the claim template",
	recreate.ReasonClaimRestoring:        "Nothing, for some minutes; if it stays, see what the driver says: `kubectl describe pvc CLAIM`",
	recreate.ReasonRestoreInvalid:        "Correct the annotation of the claim template, as the message says: `kubectl edit KIND/NAME`",

	// Those of package controllers/native, which are its own.
	"ReleasedForRecreation": "Nothing: Kubernetes recreates the pods; the message says why",
	"UpdatedInPlace":        nothingDone,
	"HoldTimedOut":          "Nothing: Kubernetes goes on; before the next update, correct what the message names",
	"HoldLost":              "See whether the admission policies of Insitu are installed, and who changes the workload: `kubectl get mutatingadmissionpolicies`",
	"NotHeld":               "Have the admission policies of Insitu act in the namespace, from Kubernetes 1.36 on (holdPolicies of the chart), with their switch; or take the label off: `kubectl label KIND/NAME insitu.dev/update-policy-`",
	"LeftBehind":            "Nothing, if the message says that pods are evicted; else do what it says, make room in their PodDisruptionBudget, or delete them: `kubectl delete pod POD`",
	"InvalidOptions":        "Correct the label or annotation that the message names: `kubectl edit KIND/NAME`",
	"Stalled":               "Do what its pods need, or fix what the API server says in the message: `kubectl insitu why KIND/NAME`",
}

// Advice says in a sentence what to do about a reason: one of ours, or one that a
// kubelet gives for a container that does not run. The words KIND/NAME, POD, CLAIM
// and NAMESPACE in it stand for names, and commands are in `backticks`. "Nothing" is advice, too.
func Advice(reason string) string {
	if known, ok := advice[reason]; ok {
		return known
	}
	for _, known := range kubeletReasons {
		if known.Reason == reason {
			return known.Advice
		}
	}
	return "See what the pod says: `kubectl describe pod POD`"
}

// AdviceOn is Advice for a workload, a pod and a claim of it: its commands can be run as
// they are. Names that are empty are not filled in. What the kind calls otherwise is named as
// the kind does.
func AdviceOn(reason string, workload Ref, pod, claim string) string {
	text := Advice(reason)
	if kind, ok := kinds.Named(schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind).GroupKind()); ok {
		text = kind.Spell(text)
	}
	text = replaceWord(text, namespaceWord, workload.Namespace)
	for word, name := range map[string]string{workloadWord: workload.String(), podWord: pod, claimWord: claim} {
		if name != "" {
			text = replaceWord(text, word, name+" -n "+workload.Namespace)
		}
	}
	return text
}

// AdviceOnOperator says what to do where the operator has not said anything of the present
// spec of a workload.
const AdviceOnOperator = "See whether the operator runs, and what it logs: " +
	"`kubectl get pods -A -l app.kubernetes.io/name=insitu`; `kubectl logs -n insitu-system deployment/insitu-manager`"

// Reasons returns the reasons of ours that Advice knows, sorted.
func Reasons() []string {
	return slices.Sorted(maps.Keys(advice))
}
