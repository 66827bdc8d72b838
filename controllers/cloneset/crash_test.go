// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// outcome is what a rollout leaves behind, without what differs from run to run.
// Which of several pods that are alike are kept is not part of it.
type outcome struct {
	Pods      []podOutcome
	Claims    int
	Revisions map[string]int64
	Status    appsv1beta1.CloneSetStatus
}

type podOutcome struct {
	Image, Revision string
	Restarts        int32
	Kept            bool
}

// outcome reads what is there. Pods whose UID is in before were kept.
func (w *world) outcome(before map[string]types.UID) outcome {
	GinkgoHelper()
	o := outcome{Revisions: map[string]int64{}, Claims: len(w.claims()), Status: w.status()}
	for name, pod := range w.pods() {
		o.Pods = append(o.Pods, podOutcome{
			Image: pod.Spec.Containers[0].Image, Revision: pod.Labels[appsv1beta1.ControllerRevisionHashLabel],
			Restarts: pod.Status.ContainerStatuses[0].RestartCount, Kept: before[name] == pod.UID,
		})
	}
	slices.SortFunc(o.Pods, func(a, b podOutcome) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for name, revision := range w.revisions() {
		o.Revisions[name] = revision.Revision
	}
	o.Status.Conditions = nil
	return o
}

// survive brings the set to rest with a manager that dies after some writes, and
// another one that lives.
func (w *world) survive(writes int, look func()) {
	GinkgoHelper()
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
		w.collect()
	}
	Expect(w.manager.IsDead()).To(BeTrue(), "the rollout has more than %d writes", writes)
	w.startManager(shared)
	w.settleWith(look)
}

var _ = Describe("A manager of CloneSets that is killed", func() {
	DescribeTable("after any write leaves a set that ends the same",
		func(ctx context.Context, set func() *builders.CloneSetBuilder, change func(*appsv1beta1.CloneSet), least int) {
			begin := func() (*world, map[string]types.UID) {
				w := newWorld(ctx)
				w.create(set())
				before := w.uids()
				w.manager.Forget()
				w.change(change)
				return w, before
			}
			w, before := begin()
			w.settle()
			undisturbed, writes := w.outcome(before), len(w.manager.Writes(""))
			Expect(writes).To(BeNumerically(">", 3))
			for k := 1; k < writes; k++ {
				By(fmt.Sprintf("killing it after write %d of %d", k, writes))
				w, before := begin()
				w.survive(k, func() { Expect(w.available()).To(BeNumerically(">=", least)) })
				Expect(w.outcome(before)).To(Equal(undisturbed), "killed after write %d", k)
				w.expectNoWrites()
			}
		},
		Entry("by recreation with pods beyond replicas", func() *builders.CloneSetBuilder {
			return reference().Replicas(2).Policy(appsv1beta1.RecreatePodUpdateStrategyType).MaxSurge(1).MaxUnavailable(0).With(claiming(false))
		}, newImage("nginx:latest"), 2),
		Entry("down, with claims", short.Spec, func() *builders.CloneSetBuilder {
			return reference().Replicas(3).With(claiming(false))
		}, func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](1) }, 0),
		Entry("up, with claims", func() *builders.CloneSetBuilder {
			return reference().Replicas(1).With(claiming(false))
		}, func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) }, 1),
	)
})
