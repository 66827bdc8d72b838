// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// trialSuffix ends the name of a snapshot that is taken before the pod is stopped.
const trialSuffix = "-trial"

// IsStray reports whether a snapshot was taken to recreate a claim, and nothing needs it: the
// recreation has ended. The request for it came late, from a manager that was killed. The
// claim is the one of its name, as it is now; nil if there is none.
//
// The data of such a snapshot is in the volume of its claim, which was never taken from the
// claim; or it is a first snapshot, from which nothing is ever restored but the claim of a
// trial.
func IsStray(snapshot *snapshotv1.VolumeSnapshot, claim *corev1.PersistentVolumeClaim) bool {
	of := types.UID(snapshot.Annotations[appsv1beta1.RecreateOfAnnotation])
	switch {
	case of == "" || snapshot.DeletionTimestamp != nil:
		return false
	case claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound:
		return false
	case claim.Name != ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, ""), snapshot.Labels[appsv1beta1.ClaimLabel] != LabelValue(claim.Name):
		return false
	}
	record := volumes.RecordOf(claim)
	isNamed := slices.ContainsFunc(record.HeldVolumes, func(entry appsv1beta1.HeldVolume) bool { return entry.Snapshot == snapshot.Name })
	return record.Recreate == nil && !isNamed && (of == claim.UID || strings.HasSuffix(snapshot.Name, trialSuffix))
}
