// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
)

// Pods of StatefulSets say the name of their revision, those of DaemonSets its hash. One that
// is in use is found by either, and stays when the history is cut.
func TestPodsSayTheirRevision(t *testing.T) {
	for name, byHash := range map[string]bool{"by its name": false, "by its hash": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := indexed()
			keeper := history.NewKeeper(c)
			owner := history.Owner{Object: sampleOwner.Object, Kind: appsv1beta1.GroupVersion.WithKind("StatefulSet"), ByHash: byHash}
			ensure := func(image, current string) Revisions {
				content, err := history.NewContent(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}, nil)
				g.Expect(err).NotTo(HaveOccurred())
				revisions, err := EnsureRevisions(t.Context(), keeper, owner, content, current)
				g.Expect(err).NotTo(HaveOccurred())
				return revisions
			}
			first := ensure("a", "")
			made, err := PodFrom(first.InPlace(first.Update), sampleOwner, "pod")
			g.Expect(err).NotTo(HaveOccurred())
			wanted := first.Update.Name()
			if byHash {
				wanted = first.Update.Hash()
				g.Expect("sample-" + wanted).To(Equal(first.Update.Name()))
			}
			g.Expect(made.Labels).To(HaveKeyWithValue("controller-revision-hash", wanted))

			for i := range 3 {
				ensure(fmt.Sprint("b", i), "")
			}
			last := ensure("c", "")
			g.Expect(last.Of(made).Name()).To(Equal(first.Update.Name()))
			g.Expect(last.Of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"controller-revision-hash": "none"}}})).To(BeNil())
			facts, err := Facts(t.Context(), c, last, made, time.Unix(1_800_000_000, 0))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(facts.From.Name).To(Equal(wanted))

			g.Expect(last.Truncate(t.Context(), keeper, []*corev1.Pod{made}, 0)).To(Succeed())
			kept := &appsv1.ControllerRevisionList{}
			g.Expect(c.List(t.Context(), kept)).To(Succeed())
			var names []string
			for i := range kept.Items {
				names = append(names, kept.Items[i].Name)
			}
			g.Expect(names).To(ConsistOf(first.Update.Name(), last.Update.Name()))
		})
	}
}
