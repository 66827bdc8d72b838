// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// writtenAt is when the write is that is judged.
var writtenAt = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// noted are entries of managedFields of so long before the write.
func noted(ages ...time.Duration) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, age := range ages {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1("{}"), Time: &metav1.Time{Time: writtenAt.Add(-age)},
		})
	}
	return entries
}

// TestHeartbeat has every write that is held, and every drain, judged by how old the
// heartbeat of the manager is.
func TestHeartbeat(t *testing.T) {
	const old, fresh = 5*time.Minute + time.Second, 5 * time.Minute
	without := metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}
	for name, tc := range map[string]struct {
		// says is how old the annotation says that the heartbeat is; none, if it is negative.
		says  time.Duration
		noted []metav1.ManagedFieldsEntry
		write []metav1.ManagedFieldsEntry
		acts  bool
	}{
		"there was none yet":                           {says: -1, noted: noted(time.Hour), write: noted(0), acts: true},
		"it is fresh":                                  {says: fresh, noted: noted(fresh), write: noted(0, time.Hour), acts: true},
		"it is old":                                    {says: old, noted: noted(old), write: noted(time.Hour, 0)},
		"it is old by a clock that is late":            {says: time.Hour, noted: noted(time.Minute, time.Hour), write: noted(0), acts: true},
		"it is fresh by a clock that is early":         {says: -time.Hour / 2, noted: noted(time.Hour), write: noted(0)},
		"nothing is noted, and it is fresh":            {says: fresh, write: noted(0), acts: true},
		"nothing is noted, and it is old":              {says: old, write: noted(0)},
		"an entry has no time, and it is old":          {says: old, noted: []metav1.ManagedFieldsEntry{without}, write: noted(0)},
		"the write only removes fields":                {says: time.Hour, noted: noted(time.Hour), write: noted(2 * time.Hour), acts: true},
		"the write has no times":                       {says: time.Hour, noted: noted(time.Hour), acts: true},
		"an entry of the write has no time, it is old": {says: old, noted: noted(old), write: append(noted(0), without)},
	} {
		t.Run(name, func(t *testing.T) {
			account := policies.Switch()
			if tc.says != -1 {
				account.SetAnnotations(map[string]string{native.HeartbeatAnnotation: writtenAt.Add(-tc.says).Format(time.RFC3339)})
			}
			account.SetManagedFields(tc.noted)
			set := newSet(t).Strict()

			forEachCase(t, func(t *testing.T, _ string, one policies.Case) {
				t.Helper()
				if isHeld(one.Old) || !isHeld(one.Want) || one.Refused != "" {
					return
				}
				asked := request(one)
				asked.Params = []client.Object{account}
				asked.New.SetManagedFields(tc.write)
				got, err := set.Admit(t.Context(), asked)

				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(isHeld(got)).To(Equal(tc.acts))
			})
			drains, err := policies.DrainCases()
			must(t, err)
			asked := drainRequest(drains[0])
			asked.Params = []client.Object{account}
			asked.New.SetManagedFields(tc.write)
			pod, err := set.Admit(t.Context(), asked)
			must(t, err)
			NewWithT(t).Expect(podutils.IsPodReady(pod.(*corev1.Pod))).To(Equal(!tc.acts), "whether a drained pod is ready whose kubelet says so")
		})
	}
}

// A manager that writes no heartbeat is that of release 0.1.0: it knows a pause only.
func TestHoldForAManagerThatKnowsAPauseOnly(t *testing.T) {
	cases, err := policies.Cases()
	must(t, err)
	asked := request(cases["Deployment"][0])
	asked.Params = []client.Object{policies.Switch()}
	got, err := newSet(t).Strict().Admit(t.Context(), asked)

	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isHeld(got)).To(BeTrue())
	g.Expect(got.(*appsv1.Deployment).Spec.Paused).To(BeTrue())
	g.Expect(got.(*appsv1.Deployment).Spec.MinReadySeconds).To(BeZero())
}
