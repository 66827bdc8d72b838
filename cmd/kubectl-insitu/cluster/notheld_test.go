// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("what the manager says of workloads that would not be held", func() {
	It("is repeated for some minutes, once", func(ctx SpecContext) {
		w := newWorld(ctx)
		now := time.Now()
		said := func(reason, message string, ago time.Duration) {
			GinkgoHelper()
			for i := range 2 {
				create(w, &corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("web.%d.%d", len(message), i)},
					InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: w.namespace, Name: "web"},
					Reason:         reason, Message: message, Type: corev1.EventTypeWarning,
					LastTimestamp: metav1.NewTime(now.Add(-ago)),
				})
			}
		}
		said("NotHeld", "a change would not be held", 10*time.Minute)
		said("NotHeld", "an earlier change would not be held", time.Hour)
		said("Stalled", "something else", 0)

		Expect(w.cluster.NotHeld(ctx, w.namespace, now)).To(Equal([]string{"a change would not be held"}))
		other := newWorld(ctx)
		Expect(other.cluster.NotHeld(ctx, other.namespace, now)).To(BeEmpty())
	})

	It("is not for those who may not read events", func(ctx SpecContext) {
		w := newWorld(ctx)
		stranger, _ := w.asUser("stranger")
		Expect(stranger.NotHeld(ctx, w.namespace, time.Now())).To(BeEmpty())
	})
})
