// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// otherReason stands for all reasons that are not in the list. Container runtimes have
// words of their own, and a label must not have any number of values.
const otherReason = "Other"

// reasonLabel returns a reason as the value of a label; empty for none.
func reasonLabel(reason string) string {
	if reason == "" || reasons.Has(reason) {
		return reason
	}
	return otherReason
}

// reasons are those that keep a pod or a claim from going on, and those of a workload
// that is stalled.
var reasons = sets.New(
	appsv1beta1.ReasonFailedUpdatePodInPlace, appsv1beta1.ReasonRefused, appsv1beta1.ReasonInvalidSpec, appsv1beta1.ReasonNotServed,
	string(native.Stalled), string(native.InvalidOptions), string(native.ProgressDeadlineExceeded),
	inplace.ReasonClaimTemplatesChanged,
	inplace.ReasonNotObserved,
	inplace.ReasonContainerRestarting,
	inplace.ReasonSettling,
	inplace.ReasonNotRestarted,
	inplace.ReasonNextBatch,
	inplace.ReasonRevisionUnknown,
	inplace.ReasonContainersChanged,
	inplace.ReasonFieldImmutable,
	inplace.ReasonRunsOnce,
	inplace.ReasonEnvFromMetadata,
	inplace.ReasonInjectionChanged,
	inplace.ReasonResizeUnsupported,
	inplace.ReasonAdmissionDenied,
	inplace.ReasonAdmissionUnknown,
	inplace.ReasonStillReady,
	inplace.ReasonEndpointsReady,
	inplace.ReasonGracePeriod,
	inplace.ReasonCannotDrain,
	inplace.ReasonImagePull,
	inplace.ReasonImageNotPullable,
	inplace.ReasonNodeUnavailable,
	inplace.ReasonPodNotReady,
	inplace.ReasonMinReadySeconds,
	inplace.ReasonEnded,
	inplace.ReasonTerminating,
	inplace.ReasonTerminationOverdue,
	inplace.ReasonSpecifiedDelete,
	inplace.ReasonPolicyReCreate,
	inplace.ReasonRecreationDenied,
	inplace.ReasonScaleIn,
	inplace.ReasonInPlaceUpdateHook,
	inplace.ReasonUpdatedHook,
	inplace.ReasonPreNormalHook,
	inplace.ReasonPreDeleteHook,
	inplace.ReasonResizeInProgress,
	inplace.ReasonResizeDeferred,
	inplace.ReasonResizeInfeasible,
	inplace.ReasonResizeError,
	inplace.ReasonResizeDenied,
	inplace.ReasonMaxConcurrent,
	inplace.ReasonMaxConcurrentClaims,
	inplace.ReasonUpdateOrder,
	inplace.ReasonVolumeNotMountable,
	inplace.ReasonBudget,
	appsv1beta1.ReasonScaleUpLimited,
	inplace.ReasonNewPod,
	inplace.ReasonNoRoom,
	inplace.ReasonDisruptionBudget,
	volumes.ReasonClaimMissing,
	volumes.ReasonClaimTerminating,
	volumes.ReasonClaimNotBound,
	volumes.ReasonClaimChanging,
	volumes.ReasonClaimExpanding,
	volumes.ReasonClaimModifying,
	volumes.ReasonVolumeInUse,
	volumes.ReasonVolumeNotRemounted,
	volumes.ReasonClaimImmutable,
	volumes.ReasonClaimControlled,
	volumes.ReasonExpansionNotAllowed,
	volumes.ReasonStorageClassMissing,
	volumes.ReasonAttributesClassMissing,
	volumes.ReasonClaimRefused,
	volumes.ReasonExpansionInfeasible,
	volumes.ReasonExpansionFailed,
	volumes.ReasonModificationInfeasible,
	volumes.ReasonModificationFailed,
	volumes.ReasonClaimOverdue,
	recreate.ReasonRecreateNotPermitted,
	recreate.ReasonSnapshotsNotServed,
	recreate.ReasonClaimHasFinalizers,
	recreate.ReasonVolumeTerminating,
	recreate.ReasonVolumeNotCSI,
	recreate.ReasonSnapshotClassMissing,
	recreate.ReasonSnapshotClassMismatch,
	recreate.ReasonDriverDiffers,
	recreate.ReasonVolumeModeChanged,
	recreate.ReasonQuotaExceeded,
	recreate.ReasonCapacityTooSmall,
	recreate.ReasonTopologyDiffers,
	recreate.ReasonRecreateFailedBefore,
	recreate.ReasonUndoWaits,
	recreate.ReasonUndoRefused,
	recreate.ReasonRestoreMissing,
	recreate.ReasonClaimRestoring,
	recreate.ReasonRestoreInvalid,
	recreate.ReasonClaimRecreating,
	recreate.ReasonVolumeAttached,
	recreate.ReasonClaimInUse,
	recreate.ReasonSnapshotNotReady,
	recreate.ReasonVolumeNotReady,
	recreate.ReasonVolumeNotRestored,
	recreate.ReasonHeldForAnother,
	recreate.ReasonClaimRewritten,
	recreate.ReasonRecreateTimedOut,
	recreate.ReasonDriverFails,
	recreate.ReasonSnapshotLost,
	recreate.ReasonSnapshotTaken,
	recreate.ReasonRecreateUndone,
	recreate.ReasonVolumeLost,
	string(resize.Removed), string(resize.OtherQOSClass), string(resize.NodeUnsupported),

	// The scheduler's own.
	corev1.PodReasonUnschedulable, corev1.PodReasonSchedulingGated,

	// The kubelet's own, of containers that it does not start.
	"ContainerCreating", "PodInitializing", "CrashLoopBackOff", "RunContainerError", "PostStartHookError",
	"CreateContainerConfigError", "PreCreateHookError", "CreateContainerError", "PreStartHookError",
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
	"RegistryUnavailable", "SignatureValidationFailed",
)
