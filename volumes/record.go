// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Record is what the operator noted on a claim when it changed it last. The zero
// Record is that of a claim that it never changed.
type Record = appsv1beta1.VolumeClaimUpdateState

// RecordOf reads the record of a claim. One that cannot be read, or that was copied from
// another claim while that was being recreated, counts as none: the claim is judged by
// what it shows.
func RecordOf(claim *corev1.PersistentVolumeClaim) Record {
	record := Record{}
	if err := json.Unmarshal([]byte(claim.Annotations[appsv1beta1.VolumeClaimUpdateStateKey]), &record); err != nil {
		return Record{}
	}
	if record.Recreate != nil && record.Recreate.ClaimUID != "" && record.Recreate.ClaimUID != claim.UID {
		return Record{}
	}
	return record
}

// asks reports whether the record is that of a request for a size.
func asks(record Record, size resource.Quantity) bool {
	return record.Size != nil && record.Size.Cmp(size) == 0
}

// detachedFor returns when a pod was deleted to have the claim grow to a size; zero
// if none was.
func detachedFor(record Record, size resource.Quantity) time.Time {
	if record.DetachTimestamp == nil || !asks(record, size) {
		return time.Time{}
	}
	return record.DetachTimestamp.Time
}

// Patch is what is written to a claim in one patch.
type Patch struct {
	// Size is the new request; nil if it stays.
	Size *resource.Quantity
	// AttributesClass is the new VolumeAttributesClass; empty if it stays.
	AttributesClass string
	// Record is noted with it.
	Record Record
}

// IsEmpty reports whether the patch changes nothing.
func (p Patch) IsEmpty() bool {
	return p.Size == nil && p.AttributesClass == ""
}

// Key names what the patch asks for: the same for the same claim is refused or
// accepted for the same reasons.
func (p Patch) Key() string {
	if p.Size == nil {
		return "/" + p.AttributesClass
	}
	return p.Size.String() + "/" + p.AttributesClass
}

// String says the patch in words.
func (p Patch) String() string {
	switch {
	case p.IsEmpty():
		return "annotations"
	case p.Size == nil:
		return "VolumeAttributesClass to " + p.AttributesClass
	case p.AttributesClass == "":
		return "request to " + p.Size.String()
	default:
		return "request to " + p.Size.String() + ", VolumeAttributesClass to " + p.AttributesClass
	}
}

// Body returns the patch as a merge patch of a claim. It applies only to the claim
// that it was decided on: what another client asked for meanwhile is not undone.
func (p Patch) Body(claim *corev1.PersistentVolumeClaim) ([]byte, error) {
	record, err := json.Marshal(p.Record)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{}
	if p.Size != nil {
		spec["resources"] = map[string]any{"requests": map[string]any{string(corev1.ResourceStorage): p.Size}}
	}
	if p.AttributesClass != "" {
		spec["volumeAttributesClassName"] = p.AttributesClass
	}
	body := map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "resourceVersion": claim.ResourceVersion,
		"annotations": map[string]any{appsv1beta1.VolumeClaimUpdateStateKey: string(record)},
	}}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	return json.Marshal(body)
}

// newRecord returns the record of a request that is made now.
func newRecord(patch Patch, before Record, now time.Time) Record {
	record, stamp := before, metav1.NewTime(now).Rfc3339Copy()
	if patch.AttributesClass != "" {
		record.AttributesClass, record.AttributesClassTimestamp = patch.AttributesClass, stamp
	}
	if patch.Size == nil {
		return record
	}
	if !asks(before, *patch.Size) {
		record.DetachTimestamp = nil
	}
	record.Size, record.SizeTimestamp = patch.Size, stamp
	return record
}
