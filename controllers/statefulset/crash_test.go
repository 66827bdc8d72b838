// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// outcome is what a rollout leaves behind, without what differs from run to run.
type outcome struct {
	Pods      map[string]podOutcome
	Revisions map[string]int64
	Status    appsv1beta1.StatefulSetStatus
}

type podOutcome struct {
	Image      string
	Restarts   int32
	Labels     map[string]string
	Kept       bool
	Conditions map[corev1.PodConditionType]corev1.ConditionStatus
}

// outcome reads what is there. Pods whose UID is in before were kept.
func (w *world) outcome(before map[string]types.UID) outcome {
	GinkgoHelper()
	o := outcome{Pods: map[string]podOutcome{}, Revisions: map[string]int64{}, Status: w.status()}
	for name, pod := range w.pods() {
		p := podOutcome{
			Image: pod.Spec.Containers[0].Image, Restarts: pod.Status.ContainerStatuses[0].RestartCount, Labels: pod.Labels,
			Kept: before[name] == pod.UID, Conditions: map[corev1.PodConditionType]corev1.ConditionStatus{},
		}
		for _, condition := range pod.Status.Conditions {
			p.Conditions[condition.Type] = condition.Status
		}
		o.Pods[name] = p
	}
	for name, revision := range w.revisions() {
		o.Revisions[name] = revision.Revision
	}
	for i := range o.Status.Conditions {
		o.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return o
}

// survive brings the set to rest with managers that die after some writes each;
// the last one lives.
func (w *world) survive(lives ...int) {
	GinkgoHelper()
	for _, writes := range lives {
		w.startManager(shared)
		w.manager.Lives = writes
		for range maxRounds {
			if w.manager.IsDead() {
				break
			}
			_, err := w.tryReconcile()
			if err != nil {
				Expect(err).To(MatchError(stage.ErrDead))
			}
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.manager.IsDead()).To(BeTrue(), "the rollout has more than %d writes", writes)
	}
	w.startManager(shared)
	w.settle()
}

var _ = Describe("A manager that is killed", func() {
	begin := func(ctx context.Context, b *builders.StatefulSetBuilder, change func(*appsv1beta1.StatefulSet)) (*world, map[string]types.UID) {
		GinkgoHelper()
		w := newWorld(ctx)
		w.create(b)
		before := w.uids()
		w.manager.Forget()
		w.change(change)
		return w, before
	}
	newImage := func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:latest" }

	DescribeTable("after any write leaves a rollout that ends the same",
		func(ctx context.Context, set func() *builders.StatefulSetBuilder, change func(*appsv1beta1.StatefulSet)) {
			w, before := begin(ctx, set(), change)
			w.settle()
			undisturbed, writes := w.outcome(before), len(w.manager.Writes(""))
			Expect(writes).To(BeNumerically(">", 3))
			for k := 1; k < writes; k++ {
				By(fmt.Sprintf("killing it after write %d of %d", k, writes))
				w, before := begin(ctx, set(), change)
				w.survive(k)
				Expect(w.outcome(before)).To(Equal(undisturbed), "killed after write %d", k)
				w.expectNoWrites()
			}
		},
		Entry("in place, two at a time", func() *builders.StatefulSetBuilder { return reference().MaxUnavailable(2) }, newImage),
		Entry("in place, with a grace period", func() *builders.StatefulSetBuilder { return reference().GracePeriod(5).Replicas(2) }, newImage),
		Entry("by recreation", func() *builders.StatefulSetBuilder { return reference().Replicas(2) }, setEnv),
	)

	It("after every single write still ends the same", short.Spec, func(ctx context.Context) {
		w, before := begin(ctx, reference(), newImage)
		w.settle()
		undisturbed := w.outcome(before)

		w, before = begin(ctx, reference(), newImage)
		w.survive(1, 1, 1, 1, 1, 1, 1)
		Expect(w.outcome(before)).To(Equal(undisturbed))
	})

	It("while it makes the first pods leaves a set that comes up the same", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(withClaim("1Gi")))
		undisturbed, writes := w.outcome(nil), len(w.manager.Writes(""))
		for k := 1; k < writes; k++ {
			w := newWorld(ctx)
			w.apply(reference().With(withClaim("1Gi")).Build())
			w.survive(k)
			Expect(w.outcome(nil)).To(Equal(undisturbed), "killed after write %d", k)
		}
	})
})
