// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("An update of a DaemonSet", func() {
	It("changes pods in place on their nodes, within the budget, with three writes each", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.expectSettled(3)
		uids := w.uids()
		w.manager.Forget()
		w.setImage("nginx:latest")
		closed := map[string]bool{}
		w.settleWith(func() {
			Expect(w.available()).To(BeNumerically(">=", 2), "maxUnavailable is 1")
			for _, pod := range w.pods() {
				if stage.PodConditionStatus(pod, appsv1beta1.InPlaceUpdateReady) == corev1.ConditionFalse {
					closed[pod.Spec.NodeName] = true
				}
			}
		})
		w.expectSettled(3)
		Expect(closed).To(HaveLen(3), "each pod leaves service before its container restarts")
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(all("nginx:latest")))
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(9), "not ready, changed, ready")
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		status := w.status()
		Expect(status.InPlaceUpdated).To(BeEquivalentTo(3))
		Expect(status.Recreated).To(BeZero())
		Expect(w.revisions()).To(HaveKey("sample-" + status.UpdateRevision))
		for name, pod := range w.pods() {
			Expect(pod.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, status.UpdateRevision), name)
			Expect(stage.PodConditionStatus(pod, appsv1beta1.InPlaceUpdateReady)).To(Equal(corev1.ConditionTrue), name)
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1), name)
			var record appsv1beta1.InPlaceUpdateState
			Expect(json.Unmarshal([]byte(pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]), &record)).To(Succeed(), name)
			Expect(record.Revision).To(Equal(status.UpdateRevision), name)
		}
		w.expectNoWrites()
	})

	It("recreates pods within maxUnavailable where the change does not allow it in place", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx, "node-1", "node-2", "node-3", "node-4")
		w.create(reference().MaxUnavailable(2))
		before := w.uids()
		w.change(newEnv)
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(4)
		for node, uid := range w.uids() {
			Expect(before[node]).NotTo(Equal(uid), node)
			Expect(w.on(node).Spec.Containers[0].Env).To(ConsistOf(HaveField("Value", "debug")))
			Expect(w.on(node).Spec.ReadinessGates).To(ConsistOf(HaveField("ConditionType", appsv1beta1.InPlaceUpdateReady)))
		}
		Expect(w.status().Recreated).To(BeEquivalentTo(4))
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreating)).NotTo(BeEmpty(), "why it was not possible in place")
	})

	It("goes on beside nodes that are stopped and left out, whose pods cannot end", func(ctx context.Context) {
		w := newWorld(ctx, "node-1", "node-2", "node-3", "stopped-1", "stopped-2")
		w.create(reference().MaxUnavailable(2))
		stopped := []string{"stopped-1", "stopped-2"}
		for _, node := range stopped {
			w.changePod(w.on(node).Name, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/never"} })
			w.label(node, "stopped", "yes")
			w.changeNodeReady(node, corev1.ConditionUnknown)
		}
		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
			set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "stopped", Operator: corev1.NodeSelectorOpDoesNotExist}},
				}}},
			}}
		})
		w.settleWith(func() {
			Expect(w.available()).To(BeNumerically(">=", 1), "two of three nodes may be without a pod")
		})
		Expect(w.images()).To(Equal(all("nginx:latest")))
		Expect(w.pods()).To(HaveLen(5), "two cannot end")
		Expect(w.status()).To(And(HaveField("DesiredNumberScheduled", int32(3)), HaveField("UpdatedNumberScheduled", int32(3))))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Message", "2 pods are to be deleted"))
	})

	It("recreates pods for an image that changes together with what does not go in place", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before := w.uids()
		w.change(func(set *appsv1beta1.DaemonSet) {
			newEnv(set)
			newImage("nginx:latest")(set)
		})
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(3)
		Expect(w.images()).To(Equal(all("nginx:latest")))
		for node, uid := range w.uids() {
			Expect(before[node]).NotTo(Equal(uid), node)
		}
		uids := w.uids()
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids), "the next image goes in place again")
	})

	It("recreates pods for an image with the type Standard", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Type(appsv1beta1.StandardDaemonSetRollingUpdateType))
		before := w.uids()
		Expect(w.on("node-1").Spec.ReadinessGates).To(BeEmpty())
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(3)
		for node, uid := range w.uids() {
			Expect(before[node]).NotTo(Equal(uid), node)
		}
	})

	It("leaves pods as they are with InPlaceOnly where the change does not allow it, and says so", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Type(appsv1beta1.InPlaceOnlyDaemonSetRollingUpdateType))
		uids := w.uids()
		w.change(newEnv)
		w.settle()
		Expect(w.uids()).To(Equal(uids))
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(w.status().Blockers).To(HaveLen(3))
	})

	It("waits while it is paused, and gives new nodes their pods", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Paused())
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Reason", appsv1beta1.ReasonPaused))
		w.expectNoWrites()

		w.addNode("node-4", nil)
		Expect(w.api.Delete(w.ctx, w.on("node-1"))).To(Succeed())
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{
			"node-1": "nginx:latest", "node-2": "nginx:alpine", "node-3": "nginx:alpine", "node-4": "nginx:latest",
		}))
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = nil })
		w.settle()
		w.expectSettled(4)
	})

	It("finishes the pod that it has begun when it is paused", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:latest")
		for range 4 {
			w.reconcile()
			w.clock.Step(time.Second)
			if slices.Contains(slices.Collect(maps.Values(w.images())), "nginx:latest") {
				break
			}
			w.kubelet.Sync(w.ctx)
		}
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true) })
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:alpine", "node-3": "nginx:latest"}))
		Expect(w.available()).To(Equal(3))
	})

	It("is left to the user's deletions with OnDelete", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.DaemonSet) {
			set.Spec.UpdateStrategy = appsv1beta1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		}))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Reason", appsv1beta1.ReasonOnDelete))
		w.expectNoWrites()
		Expect(w.api.Delete(w.ctx, w.on("node-2"))).To(Succeed())
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:alpine"}))
	})

	It("deletes nothing that could not be made again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before, uids := w.refresh().Spec.Template.DeepCopy(), w.uids()
		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cahce", MountPath: "/more"}}
		})
		for range 20 {
			_, _ = w.tryReconcile()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
			Expect(w.available()).To(Equal(3))
		}
		Expect(w.uids()).To(Equal(uids))
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(`volumeMounts[0].name: Not found: "cahce"`))))
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.Template = *before })
		w.clock.Step(time.Hour)
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("leaves an image that cannot be pulled, and has taken one node only", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids, first := w.uids(), w.status().UpdateRevision
		w.setImage("nginx:no-such-tag")
		w.settle()
		Expect(w.available()).To(Equal(2))
		Expect(w.status().Blockers).To(ContainElement(HaveField("Reason", "ImagePullBackOff")))
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.status().UpdateRevision).To(Equal(first))
	})

	It("keeps as many revisions as it should", func(ctx context.Context) {
		w := newWorld(ctx, "node-1")
		w.create(reference().With(func(set *appsv1beta1.DaemonSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](1) }))
		for _, image := range []string{"nginx:1", "nginx:2", "nginx:3"} {
			w.setImage(image)
			w.settle()
		}
		w.settle()
		Expect(w.revisions()).To(HaveLen(2))
		w.expectNoWrites()
	})

	It("changes pods in place that have no readiness gate", func(ctx context.Context) {
		Expect(policies.InstallDrain(ctx, shared.GetClient())).To(Succeed()) // nothing else of this suite drains by a label
		w := newWorld(ctx)
		w.create(reference().Type(appsv1beta1.StandardDaemonSetRollingUpdateType))
		uids := w.uids()
		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = appsv1beta1.InPlaceIfPossibleDaemonSetRollingUpdateType
		})
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})
})
