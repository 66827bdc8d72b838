// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// recorded are sets as OpenKruise left them, see testdata/README.md.
const recorded = "testdata/openkruise-1.9"

// theNodes are those that the recorded sets run on.
func theNodes() []string { return []string{"fake-000", "fake-001", "fake-002"} }

// takeOver puts a recorded set with its revisions and pods into a cluster with its nodes, at the
// time when it was recorded. The kubelet of the nodes does nothing until it is asked.
func takeOver(ctx context.Context, name string) (*world, []*unstructured.Unstructured) {
	GinkgoHelper()
	w := newWorld(ctx, theNodes()...)
	for _, node := range theNodes() {
		w.label(node, "ds", "yes")
		w.label(node, corev1.LabelHostname, node)
	}
	left, newest := stage.Restore(w.ctx, server, w.live, w.namespace, filepath.Join(recorded, name+".yaml"))
	w.clock.SetTime(newest.Add(time.Minute))
	for _, obj := range left {
		if obj.GroupVersionKind() == appsv1beta1.GroupVersion.WithKind("DaemonSet") {
			w.set = &appsv1beta1.DaemonSet{}
			Expect(w.live.Get(w.ctx, client.ObjectKeyFromObject(obj), w.set)).To(Succeed())
		}
	}
	Expect(w.set).NotTo(BeNil(), "a set in each file")
	w.startManager(newView())
	return w, left
}

// reconcileForDays reconciles the set for some minutes after the upgrade, and
// again with another manager after a day. It returns the writes and the events, but for the
// patches of the status of the set, which it counts.
func (w *world) reconcileForDays() (other []string, reports int) {
	GinkgoHelper()
	for range 2 {
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "patch DaemonSet/status ") {
				reports++
			} else {
				other = append(other, write)
			}
			return nil
		}
		for range 5 {
			w.reconcile()
			w.clock.Step(time.Minute)
		}
		for _, event := range w.recorder.All {
			other = append(other, "event "+event.Reason+": "+event.Note)
		}
		w.clock.Step(24 * time.Hour)
		w.startManager(newView())
	}
	return other, reports
}

// expectUnchanged checks that every object is what it was, except for what a status says besides
// what it said before.
func (w *world) expectUnchanged(left []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, before := range left {
		after := stage.Read(w.ctx, w.live, before)
		if before.GetKind() != "DaemonSet" {
			Expect(after).To(Equal(before))
			continue
		}
		said, _, err := unstructured.NestedMap(before.Object, "status")
		Expect(err).NotTo(HaveOccurred())
		for field, value := range said {
			Expect(after.Object["status"]).To(HaveKeyWithValue(field, value))
		}
		Expect(after.Object["spec"]).To(Equal(before.Object["spec"]))
		Expect(after.Object["metadata"]).To(HaveKeyWithValue("generation", before.GetGeneration()))
	}
}

// expectAtWork checks that what was restored is a set that the manager serves: one that it did not
// see would stay as it is, too.
func (w *world) expectAtWork() {
	GinkgoHelper()
	w.manager.Forget()
	w.addNode("fake-003", map[string]string{"ds": "yes"})
	w.reconcile()
	Expect(w.manager.Writes("create Pod ")).To(HaveLen(1))
	for _, pod := range w.pods() {
		Expect(pod.OwnerReferences).To(ContainElement(HaveField("UID", w.set.UID)))
	}
}

// versions returns the images of the containers "main" by node.
func (w *world) versions() map[string]string {
	GinkgoHelper()
	images := w.images()
	for node, image := range images {
		images[node] = strings.TrimPrefix(image, "registry.example.com/web:")
	}
	return images
}

var _ = Describe("A DaemonSet of OpenKruise that is taken over", func() {
	files, err := filepath.Glob(filepath.Join(recorded, "*.yaml"))

	It("is there", func() {
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(9))
	})

	DescribeTable("is left alone while nothing is to be done",
		func(ctx context.Context, name string) {
			w, left := takeOver(ctx, name)
			other, reports := w.reconcileForDays()
			Expect(other).To(BeEmpty())
			Expect(reports).To(Equal(1), "OpenKruise writes no conditions")
			w.expectUnchanged(left)
			Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", BeEquivalentTo("True")))
			w.expectAtWork()
		},
		Entry("it was never updated", "settled"),
		Entry("it was updated in place, twice", "inplace-twice", short.Spec),
		Entry("its pods were recreated", "recreated"),
		Entry("its partition keeps two pods", "partition"),
		Entry("its selector keeps two pods, in the words of v1alpha1", "v1alpha1"),
	)

	It("goes on when its partition falls, without a pod that is recreated", func(ctx context.Context) {
		w, _ := takeOver(ctx, "partition")
		uids := w.uids()
		Expect(w.versions()).To(Equal(map[string]string{"fake-000": "1", "fake-001": "1", "fake-002": "2"}))
		w.change(partitioned("1"))
		w.settle()
		Expect(w.versions()).To(Equal(map[string]string{"fake-000": "1", "fake-001": "2", "fake-002": "2"}))
		w.change(partitioned("0"))
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.status().UpdateRevision).To(Equal("5b7c89bf46"), "OpenKruise's")
		Expect(w.revisions()).To(HaveLen(2))
		for _, pod := range w.pods() {
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
		}
	})

	It("goes back from a partition", func(ctx context.Context) {
		w, _ := takeOver(ctx, "partition")
		uids := w.uids()
		w.reconcile()
		w.setImage("registry.example.com/web:1")
		w.settle()
		w.expectSettled(3)
		Expect(w.versions()).To(Equal(same("1", theNodes()...)))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.status().UpdateRevision).To(Equal("74c66fd5f9"), "OpenKruise's first")
	})

	It("finishes the pods that were changed, and goes on with the next", func(ctx context.Context) {
		w, left := takeOver(ctx, "inplace-half")
		uids := w.uids()
		w.reconcile()
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty(), "two of three are out of service, as maxUnavailable allows")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 1)) })
		w.expectSettled(3)
		Expect(w.versions()).To(Equal(same("2", theNodes()...)))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.revisions()).To(HaveLen(2))
		for _, pod := range w.pods() {
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1), pod.Name)
		}
		Expect(left).To(HaveLen(6))
	})

	It("holds the pod on that a hook holds, and recreates it when that is released", func(ctx context.Context) {
		const hook = "example.com/hook"
		w, left := takeOver(ctx, "preparing-delete")
		before := w.uids()
		Expect(w.preparing()).To(Equal([]string{"fake-000"}))
		other, _ := w.reconcileForDays()
		Expect(other).To(BeEmpty())
		for _, obj := range left[1:] {
			Expect(stage.Read(w.ctx, w.live, obj)).To(Equal(obj))
		}
		Expect(w.status().Blockers).To(ContainElement(HaveField("Reason", inplace.ReasonPreDeleteHook)))

		for _, node := range []string{"fake-000", "fake-002", "fake-001"} {
			Expect(w.preparing()).To(Equal([]string{node}))
			w.changePod(w.on(node).Name, func(pod *corev1.Pod) { delete(pod.Labels, hook) })
			w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
			Expect(w.uids()[node]).NotTo(Equal(before[node]))
		}
		w.expectSettled(3)
		Expect(w.revisions()).To(HaveLen(2))
	})

	It("finishes the surge that was begun, and goes on", func(ctx context.Context) {
		w, _ := takeOver(ctx, "surge")
		Expect(w.crowded()).To(Equal(map[string]int{"fake-001": 2}))
		w.reconcile()
		Expect(w.manager.Writes("create Pod")).To(BeEmpty())
		Expect(w.manager.Writes("delete Pod")).To(BeEmpty())
		w.settleWith(func() {
			Expect(w.available()).To(BeNumerically(">=", 3))
			Expect(len(w.crowded())).To(BeNumerically("<=", 1))
		})
		w.expectSettled(3)
		Expect(w.manager.Writes("create Pod")).To(HaveLen(2), "the third one was there")
		Expect(w.revisions()).To(HaveLen(2))
	})

	It("has one pod at an image that cannot be pulled, and leaves it for a good one", func(ctx context.Context) {
		const stuck = "agent-w47z6"
		w, left := takeOver(ctx, "bad-image")
		uids := w.uids()
		w.kubelet.Away[stuck] = true // it cannot pull the image
		other, _ := w.reconcileForDays()
		Expect(other).To(HaveEach(HavePrefix("event ")))
		for _, obj := range left[1:] {
			Expect(stage.Read(w.ctx, w.live, obj)).To(Equal(obj))
		}
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Reason", "ImagePullBackOff"))

		delete(w.kubelet.Away, stuck)
		w.setImage("registry.example.com/web:3")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(3)
		Expect(w.versions()).To(Equal(same("3", theNodes()...)))
		Expect(w.uids()).To(Equal(uids), "in place")
	})
})
