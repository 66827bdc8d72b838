// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Reasons of claims that are to be restored.
const (
	// ReasonRestoreMissing: there is no snapshot to start from.
	ReasonRestoreMissing = "RestoreSnapshotMissing"
	// ReasonClaimRestoring: the claim is made from the snapshot that its template names.
	ReasonClaimRestoring = "ClaimRestoring"
	// ReasonRestoreInvalid: the annotation of the template cannot be understood.
	ReasonRestoreInvalid = "RestoreInvalid"
)

// Restoration is what a claim template says of the snapshots that its new claims
// start from.
type Restoration struct {
	// Snapshot is the name of the snapshot; empty if the template names none for the
	// ordinal.
	Snapshot string
	// OrEmpty: a claim without a snapshot starts empty.
	OrEmpty bool
}

// RestorationOf returns what the annotations of a claim template say for an ordinal of
// a workload; nil if they say nothing.
func RestorationOf(annotations map[string]string, template, workload string, ordinal int) (*Restoration, error) {
	text, wanted := annotations[appsv1beta1.RestoreFromAnnotation]
	if !wanted {
		return nil, nil
	}
	restoration := &Restoration{}
	switch policy := annotations[appsv1beta1.RestoreMissingAnnotation]; policy {
	case "", appsv1beta1.RestoreMissingRefuse:
	case appsv1beta1.RestoreMissingEmpty:
		restoration.OrEmpty = true
	default:
		return nil, fmt.Errorf("annotation %s of claim template %s is %q; accepted are %s and %s",
			appsv1beta1.RestoreMissingAnnotation, template, policy, appsv1beta1.RestoreMissingRefuse, appsv1beta1.RestoreMissingEmpty)
	}
	pattern := text
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		byOrdinal := map[string]string{}
		if err := json.Unmarshal([]byte(text), &byOrdinal); err != nil {
			return nil, fmt.Errorf("annotation %s of claim template %s is no JSON object of snapshot names by ordinal, such as {\"0\":\"nightly-0\"}: %w",
				appsv1beta1.RestoreFromAnnotation, template, err)
		}
		pattern = byOrdinal[strconv.Itoa(ordinal)]
	}
	restoration.Snapshot = strings.NewReplacer(
		"$(claim)", template, "$(ordinal)", strconv.Itoa(ordinal), "$(workload)", workload,
	).Replace(pattern)
	if problems := validation.IsDNS1123Subdomain(restoration.Snapshot); restoration.Snapshot != "" && len(problems) > 0 {
		return nil, fmt.Errorf("annotation %s of claim template %s makes the snapshot name %q, which %s; $(claim), $(ordinal) and $(workload) are replaced",
			appsv1beta1.RestoreFromAnnotation, template, restoration.Snapshot, problems[0])
	}
	return restoration, nil
}

// restore returns the step that makes a claim that there was none of before, where
// its template says what it starts from.
func (f Facts) restore() Step {
	wanted, err := f.restoration()
	switch {
	case err != nil:
		return wait(ReasonRestoreInvalid, "%v", err)
	case wanted == nil:
		return Step{}
	case f.Snapshot != nil && f.Snapshot.DeletionTimestamp == nil && !IsReady(f.Snapshot):
		step := wait(ReasonSnapshotNotReady, "it is made when snapshot %s is ready to use", wanted.Snapshot)
		if said := snapshotError(f.Snapshot); said != "" {
			step.Message += ", of which is said: " + said
		}
		return step
	case IsReady(f.Snapshot):
		claim := f.Template.DeepCopy()
		restoreFrom(claim, f.Snapshot, claim.Spec.Resources.Requests[corev1.ResourceStorage])
		delete(claim.Annotations, appsv1beta1.RestoreFromAnnotation)
		delete(claim.Annotations, appsv1beta1.RestoreMissingAnnotation)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, appsv1beta1.RestoredFromAnnotation, wanted.Snapshot)
		step := act(CreateClaim, ReasonClaimRestoring, "it is restored from snapshot %s", wanted.Snapshot)
		step.Claim = claim
		return step
	case wanted.OrEmpty:
		return Step{}
	case wanted.Snapshot == "":
		return wait(ReasonRestoreMissing, "annotation %s of its template names no snapshot for ordinal %d: name one, or set annotation %s to %s",
			appsv1beta1.RestoreFromAnnotation, f.Ordinal, appsv1beta1.RestoreMissingAnnotation, appsv1beta1.RestoreMissingEmpty)
	default:
		return wait(ReasonRestoreMissing, "snapshot %s, which it is to be restored from, does not exist: make it, or set annotation %s of its template to %s",
			wanted.Snapshot, appsv1beta1.RestoreMissingAnnotation, appsv1beta1.RestoreMissingEmpty)
	}
}

// Restored returns the name of the snapshot that the claim is restored from, or would be;
// empty if it is none, or the template cannot be understood.
func (f Facts) Restored() string {
	if f.Claim != nil {
		return f.Claim.Annotations[appsv1beta1.RestoredFromAnnotation]
	}
	if wanted, err := f.restoration(); err == nil && wanted != nil {
		return wanted.Snapshot
	}
	return ""
}

func (f Facts) restoration() (*Restoration, error) {
	template := strings.TrimSuffix(f.Template.Name, "-"+f.Workload+"-"+strconv.Itoa(f.Ordinal))
	return RestorationOf(f.Template.Annotations, template, f.Workload, f.Ordinal)
}

// awaitRestore returns the next step of a claim without a volume that is being restored:
// one whose snapshot is gone would wait for ever.
func (f Facts) awaitRestore() Step {
	if !isRestored(f.Claim) || f.Claim.Spec.VolumeName != "" {
		return Step{}
	}
	name := f.Claim.Annotations[appsv1beta1.RestoredFromAnnotation]
	if f.Snapshot == nil || f.Snapshot.DeletionTimestamp != nil {
		return f.deleteUnbound("snapshot " + name + ", which it was to be restored from, is gone")
	}
	return pending(wait(ReasonVolumeNotReady, "its volume is being made from snapshot %s%s", name, f.newVolumeError().suffix()))
}

// isRestored reports whether a claim was made from the snapshot that its template
// named.
func isRestored(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[appsv1beta1.RestoredFromAnnotation] != ""
}
