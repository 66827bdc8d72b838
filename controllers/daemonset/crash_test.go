// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

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
	"github.com/insitu-dev/insitu/test/stage"
)

// outcome is what a rollout leaves behind, without what differs from run to run.
type outcome struct {
	// Pods are those on the nodes.
	Pods      map[string]podOutcome
	Revisions map[string]int64
	Status    appsv1beta1.DaemonSetStatus
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
	for _, pod := range w.pods() {
		p := podOutcome{
			Image: pod.Spec.Containers[0].Image, Restarts: pod.Status.ContainerStatuses[0].RestartCount, Labels: pod.Labels,
			Kept: before[pod.Spec.NodeName] == pod.UID, Conditions: map[corev1.PodConditionType]corev1.ConditionStatus{},
		}
		for _, condition := range pod.Status.Conditions {
			p.Conditions[condition.Type] = condition.Status
		}
		o.Pods[pod.Spec.NodeName] = p
	}
	for name, revision := range w.revisions() {
		o.Revisions[name] = revision.Revision
	}
	for i := range o.Status.Conditions {
		o.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return o
}

// survive brings the set to rest with managers that die after some writes each; the last one
// lives. look is called at each step.
func (w *world) survive(look func(), lives ...int) {
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
			look()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.manager.IsDead()).To(BeTrue(), "the rollout has more than %d writes", writes)
	}
	w.startManager(shared)
	w.settleWith(look)
}

var _ = Describe("A manager of DaemonSets that is killed", func() {
	begin := func(ctx context.Context, b *builders.DaemonSetBuilder, change func(*appsv1beta1.DaemonSet)) (*world, map[string]types.UID) {
		GinkgoHelper()
		w := newWorld(ctx)
		w.create(b)
		before := w.uids()
		w.manager.Forget()
		w.change(change)
		return w, before
	}

	DescribeTable("after any write leaves a rollout that ends the same",
		func(ctx context.Context, set func() *builders.DaemonSetBuilder, change func(*appsv1beta1.DaemonSet), least int) {
			w, before := begin(ctx, set(), change)
			w.settle()
			undisturbed, writes := w.outcome(before), len(w.manager.Writes(""))
			Expect(writes).To(BeNumerically(">", 3))
			for k := 1; k < writes; k++ {
				By(fmt.Sprintf("killing it after write %d of %d", k, writes))
				w, before := begin(ctx, set(), change)
				w.survive(func() { Expect(w.available()).To(BeNumerically(">=", least)) }, k)
				Expect(w.outcome(before)).To(Equal(undisturbed), "killed after write %d", k)
				w.expectNoWrites()
			}
		},
		Entry("in place", reference, newImage("nginx:latest"), 2),
		Entry("in place, two at a time", func() *builders.DaemonSetBuilder { return reference().MaxUnavailable(2) }, newImage("nginx:latest"), 1),
		Entry("by recreation", reference, newEnv, 2),
		Entry("with a surge", func() *builders.DaemonSetBuilder { return reference().Surge("2") }, newImage("nginx:latest"), 3),
	)

	It("after every single write still ends the same", func(ctx context.Context) {
		w, before := begin(ctx, reference(), newImage("nginx:latest"))
		w.settle()
		undisturbed := w.outcome(before)
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(9))

		w, before = begin(ctx, reference(), newImage("nginx:latest"))
		w.survive(func() { Expect(w.available()).To(BeNumerically(">=", 2)) }, 1, 1, 1, 1, 1, 1, 1)
		Expect(w.outcome(before)).To(Equal(undisturbed))
	})

	It("while it makes the first pods leaves a set that comes up the same", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		undisturbed, writes := w.outcome(nil), len(w.manager.Writes(""))
		for k := 1; k < writes; k++ {
			w := newWorld(ctx)
			w.apply(reference())
			w.survive(func() {}, k)
			Expect(w.outcome(nil)).To(Equal(undisturbed), "killed after write %d", k)
		}
	})
})
