// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPatch(t *testing.T) {
	size := ptr.To(resource.MustParse("2Gi"))
	for name, test := range map[string]struct {
		patch             Patch
		says, key, inJSON string
	}{
		"nothing but a record": {Patch{}, "", "/", `{"metadata":{"annotations":{"insitu.dev/claim-update-state":"{}"},"resourceVersion":"41","uid":"1234"}}`},
		"a size": {
			Patch{Size: size, Record: Record{Size: size}}, "request to 2Gi", "2Gi/",
			`{"metadata":{"annotations":{"insitu.dev/claim-update-state":"{\"size\":\"2Gi\"}"},"resourceVersion":"41","uid":"1234"},` +
				`"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`,
		},
		"attributes": {
			Patch{AttributesClass: "gold", Record: Record{AttributesClass: "gold"}}, "VolumeAttributesClass to gold", "/gold",
			`{"metadata":{"annotations":{"insitu.dev/claim-update-state":"{\"attributesClass\":\"gold\"}"},"resourceVersion":"41","uid":"1234"},` +
				`"spec":{"volumeAttributesClassName":"gold"}}`,
		},
		"both": {
			Patch{Size: size, AttributesClass: "gold"}, "request to 2Gi, VolumeAttributesClass to gold", "2Gi/gold",
			`{"metadata":{"annotations":{"insitu.dev/claim-update-state":"{}"},"resourceVersion":"41","uid":"1234"},` +
				`"spec":{"resources":{"requests":{"storage":"2Gi"}},"volumeAttributesClassName":"gold"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			body, err := test.patch.Body(claimOf("1Gi", ""))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(body).To(MatchJSON(test.inJSON))
			g.Expect(test.patch.Key()).To(Equal(test.key))
			if test.says != "" {
				g.Expect(test.patch.String()).To(Equal(test.says))
			}
			g.Expect(test.patch.IsEmpty()).To(Equal(test.says == ""))
		})
	}
}

// TestRecordOfChanges follows what is noted on one claim over changes of both kinds.
func TestRecordOfChanges(t *testing.T) {
	g := NewWithT(t)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second).Local())
	}
	l := newLife(t, "1Gi", "")
	l.now = start.Add(300 * time.Millisecond)
	template("2Gi", "")(l)
	g.Expect(l.decide()).To(Equal("Changing request to 2Gi"))
	record := RecordOf(l.Claim)
	g.Expect(record.Size.String()).To(Equal("2Gi"))
	g.Expect(record.SizeTimestamp.Time).To(BeTemporally("==", at(0).Time), "to the second, as conditions are")

	l.now = start.Add(10 * time.Second)
	template("2Gi", "gold")(l)
	g.Expect(l.decide()).To(Equal("Changing VolumeAttributesClass to gold"))
	record = RecordOf(l.Claim)
	g.Expect(record.Size.String()).To(Equal("2Gi"), "what is known of the size stays")
	g.Expect(record.SizeTimestamp.Time).To(BeTemporally("==", at(0).Time))
	g.Expect(record.AttributesClass).To(Equal("gold"))
	g.Expect(record.AttributesClassTimestamp.Time).To(BeTemporally("==", at(10).Time))

	modified("gold")(l)
	l.now = start.Add(2 * time.Minute)
	growing(controllerInProgress, resizing, attached)(l)
	g.Expect(l.decide()).To(Equal("Detaching VolumeInUse"))
	record = RecordOf(l.Claim)
	g.Expect(record.AttributesClass).To(Equal("gold"))
	g.Expect(record.Size.String()).To(Equal("2Gi"), "the size that the pod goes for")
	g.Expect(record.DetachTimestamp.Time).To(BeTemporally("==", at(120).Time))
	g.Expect(record.InUseTimestamp.Time).To(BeTemporally("==", at(120).Time))

	l.now = start.Add(125 * time.Second)
	requests("1Gi")(l) // another client has taken it back
	g.Expect(l.decide()).To(Equal("away: Changing request to 2Gi"))
	record = RecordOf(l.Claim)
	g.Expect(record.DetachTimestamp.Time).To(BeTemporally("==", at(120).Time), "it is the same growth")
	g.Expect(record.SizeTimestamp.Time).To(BeTemporally("==", at(125).Time))

	l.Pod, l.now = podSince(start.Add(time.Hour)), start.Add(time.Hour)
	grown("2Gi")(l)
	template("3Gi", "")(l)
	l.InUseSince = time.Time{}
	g.Expect(l.decide()).To(Equal("Detaching VolumeInUse"), "what was learned of the driver is kept for a day")
	l.now, l.Claim.Annotations = start.Add(2*time.Hour), nil
	g.Expect(l.decide()).To(Equal("back: Changing request to 3Gi"))
	record = RecordOf(l.Claim)
	g.Expect(record.DetachTimestamp).To(BeNil())
}
