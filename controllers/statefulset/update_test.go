// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// same maps each pod of a set of three to one value.
func same[T any](value T) map[string]T {
	return map[string]T{"sample-0": value, "sample-1": value, "sample-2": value}
}

// reference is the set that most specs start from.
func reference() *builders.StatefulSetBuilder {
	return builders.StatefulSet("", "sample", "nginx:alpine")
}

var _ = Describe("An update in place", func() {
	It("takes three writes per pod, with the sample as users apply it", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		raw, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "statefulset.yaml"))
		Expect(err).NotTo(HaveOccurred())
		set := &appsv1beta1.StatefulSet{}
		Expect(yaml.UnmarshalStrict(raw, set)).To(Succeed())
		w.apply(set)
		w.reconcile()
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-1", "sample-2"}), "all at once")
		w.settle()
		w.expectSettled(3)
		for name, pod := range w.pods() {
			Expect(stage.PodConditionStatus(pod, appsv1beta1.InPlaceUpdateReady)).To(Equal(corev1.ConditionTrue), name)
		}
		first, uids := w.status().UpdateRevision, w.uids()
		Expect(w.status().Recreated).To(BeEquivalentTo(3))

		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settleWith(func() {
			ready := 0
			for _, pod := range w.pods() {
				if stage.PodConditionStatus(pod, corev1.PodReady) == corev1.ConditionTrue {
					ready++
				}
			}
			Expect(ready).To(BeNumerically(">=", 1), "maxUnavailable is 2")
		})
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		for name := range uids {
			Expect(append(w.manager.Writes("patch Pod/status "+name), w.manager.Writes("patch Pod "+name)...)).To(Equal([]string{
				"patch Pod/status " + name, "patch Pod/status " + name, "patch Pod " + name,
			}), "not ready, changed, ready")
		}
		Expect(w.manager.Writes("create")).To(HaveLen(1), "one revision: %v", w.manager.Writes("create"))
		Expect(w.manager.Writes("delete")).To(BeEmpty())

		status := w.status()
		Expect(status.UpdateRevision).NotTo(Equal(first))
		Expect(status.InPlaceUpdated).To(BeEquivalentTo(3))
		Expect(status.Recreated).To(BeZero())
		Expect(w.recorder.Events(appsv1beta1.ReasonUpdatingPodInPlace)).To(ContainElement(And(
			HaveField("Kind", "Pod"), HaveField("Name", "sample-2"),
			HaveField("Note", ContainSubstring("image of main: nginx:alpine to nginx:latest")))))
		var told []string
		for _, event := range w.recorder.Events(appsv1beta1.ReasonSuccessfulUpdatePodInPlace) {
			told = append(told, event.Kind+" "+event.Note)
		}
		Expect(told).To(ContainElements(HavePrefix("Pod runs"), HavePrefix("Pod runs"), HavePrefix("Pod runs"), HavePrefix("StatefulSet pod")))
		Expect(len(told)).To(BeNumerically("<=", 6), "one on each pod, and one on the set for all of a moment")
	})

	It("takes three writes per pod without the readiness gate, too", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.createUngated(reference())
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty(), "there is no gate to set")
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		for _, name := range []string{"sample-0", "sample-1", "sample-2"} {
			Expect(podWritesOf(w, name)).To(Equal([]string{"patch Pod/status " + name, "patch Pod " + name, "patch Pod/status " + name}))
			Expect(w.pod(name).Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
		}
	})

	It("takes one write per pod and no restart for a toleration, and recreates for one less", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.manager.Forget()
		spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](60)}
		tolerate := func(tolerations ...corev1.Toleration) {
			w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Tolerations = tolerations })
			w.settle()
			w.expectSettled(3)
		}
		for _, seconds := range []int64{60, 600} {
			spot.TolerationSeconds = &seconds
			tolerate(spot)
			Expect(w.uids()).To(Equal(uids))
			Expect(w.restarts()).To(Equal(same[int32](0)))
			for name, pod := range w.pods() {
				Expect(pod.Spec.Tolerations).To(ContainElement(spot), name)
				Expect(len(pod.Spec.Tolerations)).To(BeNumerically(">", 1), "what the API server gave it stays")
			}
		}
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(6), "%v", w.manager.Writes("patch Pod"))

		tolerate()
		Expect(w.status().Recreated).To(BeEquivalentTo(3))
		for name, pod := range w.pods() {
			Expect(uids).NotTo(ContainElement(pod.UID), name)
		}
	})

	It("takes one write per pod and no restart for labels and annotations", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Annotations = map[string]string{"note": "old", "gone": "soon"}
		}))
		uids := w.uids()
		w.manager.Forget()
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Annotations = map[string]string{"note": "new"}
			set.Spec.Template.Labels["tier"] = "web"
		})
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](0)))
		Expect(w.manager.Writes("patch Pod")).To(ConsistOf("patch Pod sample-0", "patch Pod sample-1", "patch Pod sample-2"))
		for name, pod := range w.pods() {
			Expect(pod.Annotations).To(HaveKeyWithValue("note", "new"), name)
			Expect(pod.Annotations).NotTo(HaveKey("gone"), name)
			Expect(pod.Labels).To(HaveKeyWithValue("tier", "web"), name)
		}
		Expect(w.status().InPlaceUpdated).To(BeEquivalentTo(3))
	})

	It("completes between two tags of one digest", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(builders.StatefulSet("", "sample", "nginx:latest"))
		uids := w.uids()
		w.setImage("nginx:stable")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](1)))
	})

	It("goes to an image that does not exist with one pod, and back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids, first := w.uids(), w.status().UpdateRevision
		w.setImage("nginx:" + stage.MissingImage)
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{
			"sample-0": "nginx:alpine", "sample-1": "nginx:alpine", "sample-2": "nginx:" + stage.MissingImage,
		}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionFalse))
		Expect(w.status().Blockers[0]).To(And(HaveField("Pod", "sample-2"), HaveField("Reason", "ImagePullBackOff")))
		since := w.status().Blockers[0].Since
		w.reconcile()
		Expect(w.status().Blockers[0].Since).To(Equal(since))

		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.status().UpdateRevision).To(Equal(first))
	})

	It("is overtaken by the next one at any step", func(ctx context.Context) {
		for steps := range 7 {
			w := newWorld(ctx)
			w.create(reference().MaxUnavailable(2))
			uids := w.uids()
			w.setImage("nginx:latest")
			for range steps {
				w.reconcile()
				w.kubelet.Sync(w.ctx)
			}
			w.setImage("nginx:third")
			w.settle()
			w.expectSettled(3)
			Expect(w.images()).To(Equal(same("nginx:third")), "after %d steps", steps)
			Expect(w.uids()).To(Equal(uids), "after %d steps", steps)
			for _, pod := range w.pods() {
				Expect(pod.Status.ContainerStatuses[0].Image).To(Equal("nginx:third"), "after %d steps", steps)
			}
		}
	})
})
