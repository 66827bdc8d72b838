// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A claim whose snapshot is gone, and whose volume is being deleted, waits: it is neither
// made empty nor made from what goes away.
func TestSnapshotGoneAndVolumeBeingDeleted(t *testing.T) {
	g, now := NewWithT(t), time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)
	held := Volume{
		PersistentVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "old", DeletionTimestamp: &metav1.Time{Time: now}}},
		State: &appsv1beta1.HeldVolumeState{Claim: "data-web-0", ClaimUID: "1", Recreate: Attempt{
			Number: 1, Source: appsv1beta1.SnapshotRecreateSource, Snapshot: "saved", StartTimestamp: metav1.NewTime(now),
		}},
	}
	step := Next(Facts{Template: &corev1.PersistentVolumeClaim{}, Held: []Volume{held}}, now)
	g.Expect(step.Action).To(Equal(Wait))
	g.Expect(step.Reason).To(Equal(ReasonSnapshotLost))
	g.Expect(step.PodMayRun).To(BeFalse())
	g.Expect(step.Message).To(Equal("its snapshot saved is gone, and its volume old is being deleted: no other object leads to its data"))
}
