// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestARecordIsReadOnce(t *testing.T) {
	g := NewWithT(t)
	pod := inFlight("p0").Build()
	before, err := readState(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(testing.AllocsPerRun(10, func() { _, _ = readState(pod) })).To(BeNumerically("<=", 1), "the key of the cache")

	pod.Annotations[appsv1beta1.InPlaceUpdateStateKey] = `{"revision":"c"}`
	after, err := readState(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.Revision).To(Equal("c"), "a record that was changed is read")
	g.Expect(before.Revision).To(Equal("b"))
}

func TestARecordThatCannotBeReadIsToldEachTime(t *testing.T) {
	pod := inFlight("p0").Annotation(appsv1beta1.InPlaceUpdateStateKey, "{").Build()
	for range 2 {
		_, err := readState(pod)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("of pod default/p0: unexpected end of JSON input")))
	}
}

// The steps of batches keep, add to and take from what is noted of those before.
func TestSharedRecordsAreNotChanged(t *testing.T) {
	r := newRanked(t, "2", "1", "")
	r.sized("1Gi", "512Mi")
	for _, revision := range []string{"2", "2", "1", "2", "2", "2"} {
		pod := r.pod.DeepCopy()
		_, _ = readState(pod)
		r.step(revision)
		r.act(true)
		expectRecordAsWritten(t, pod)
	}
	w := big(t, 1000)
	MakePlan(w, planned)
	for i := range w.Pods {
		expectRecordAsWritten(t, w.Pods[i].Pod)
	}
}

func expectRecordAsWritten(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	g := NewWithT(t)
	raw, ok := pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]
	if !ok {
		return
	}
	written := &appsv1beta1.InPlaceUpdateState{}
	g.Expect(json.Unmarshal([]byte(raw), written)).To(Succeed())
	known, err := readState(pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(known).To(Equal(written))
}
