// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestCompare(t *testing.T) {
	compatible, ready := Match{Compatible: true}, Match{Compatible: true, Ready: true}
	gold := func(l *life) { l.Claim.Spec.VolumeAttributesClassName = ptr.To("gold") }
	for name, test := range map[string]struct {
		is   func(*life)
		want Match
	}{
		"as its template":    {func(*life) {}, ready},
		"smaller":            {template("2Gi", ""), Match{}},
		"it asks for enough": {all(template("2Gi", ""), requests("2Gi")), compatible},
		"it asks for more":   {all(template("2Gi", ""), requests("3Gi")), compatible},
		"larger":             {all(requests("2Gi"), grown("2Gi")), ready},
		"rounded up":         {all(template("2Gi", ""), grown("3Gi")), ready},
		"a growth that failed, and was rolled back": {all(requests("4Gi"), growing(controllerInfeasible, resizing, outOfRange)), ready},
		"not bound":                                 {func(l *life) { l.Claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending} }, compatible},
		"not bound, and smaller":                    {all(template("2Gi", ""), func(l *life) { l.Claim.Status = corev1.PersistentVolumeClaimStatus{} }), Match{}},
		"another attributes class":                  {template("1Gi", "gold"), Match{}},
		"the attributes are asked for":              {all(template("1Gi", "gold"), gold), compatible},
		"the attributes are there":                  {all(template("1Gi", "gold"), gold, modified("gold")), ready},
		"the attributes of another class are there": {all(template("1Gi", "gold"), gold, modified("silver")), compatible},
		"the attributes are there, the size not":    {all(template("2Gi", "gold"), requests("2Gi"), gold, modified("gold")), compatible},
		"the size is there, the attributes not":     {all(template("2Gi", "gold"), grown("2Gi")), Match{}},
		"the template names no attributes class":    {func(l *life) { l.Claim = claimOf("1Gi", "gold") }, ready},
		"another storage class":                     {func(l *life) { l.Template.Spec.StorageClassName = ptr.To("fast") }, Match{}},
		"the same storage class by name":            {func(l *life) { l.Template.Spec.StorageClassName = ptr.To("standard") }, ready},
		"another volume mode":                       {func(l *life) { l.Template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, Match{}},
		"other access modes":                        {func(l *life) { l.Template.Spec.AccessModes = nil }, Match{}},
		"being deleted":                             {func(l *life) { l.Claim.DeletionTimestamp = &l.Claim.CreationTimestamp }, Match{}},
		"labels and what matters at creation": {func(l *life) {
			l.Template.Labels = map[string]string{"a": "b"}
			l.Template.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "seed"}
		}, ready},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, "1Gi", "")
			test.is(l)
			NewWithT(t).Expect(Compare(l.Claim, l.Template)).To(Equal(test.want))
		})
	}
}
