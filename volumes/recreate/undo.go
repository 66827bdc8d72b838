// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// undoOf returns the name of the volume that a user asks to have back; empty if no user
// does, and UndoRecreatePrevious if there is none before.
func undoOf(claim *corev1.PersistentVolumeClaim) string {
	wanted := claim.Annotations[appsv1beta1.UndoRecreateAnnotation]
	if wanted != appsv1beta1.UndoRecreatePrevious {
		return wanted
	}
	if held := volumes.RecordOf(claim).HeldVolumes; len(held) > 0 {
		return held[0].Name
	}
	return wanted
}

// AsksForUndo reports whether a user asks to have an earlier volume of a claim back.
func AsksForUndo(claim *corev1.PersistentVolumeClaim) bool { return undoOf(claim) != "" }
