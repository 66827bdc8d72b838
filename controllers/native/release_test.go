// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
)

func intOrString(value string) intstr.IntOrString { return intstr.Parse(value) }

var _ = Describe("Without policies", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("a StatefulSet gets back the strategy that was replaced", short.Spec, func() {
		set := &appsv1.StatefulSet{
			ObjectMeta: w.meta(map[string]string{"insitu.dev/held-partition": "2", "insitu.dev/status": "{}", "example.io/team": "a"}),
			Spec: appsv1.StatefulSetSpec{
				Selector: selector, Template: template(newImage),
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			},
		}
		set.Labels[apinative.HeldLabel] = apinative.Release
		create(w, set)

		w.reconcile(native.StatefulSet)

		set = get(w, &appsv1.StatefulSet{}, w.name)
		Expect(set.Spec.UpdateStrategy.Type).To(Equal(appsv1.RollingUpdateStatefulSetStrategyType))
		Expect(set.Spec.UpdateStrategy.RollingUpdate.Partition).To(Equal(ptr.To[int32](2)))
		Expect(set.Labels).To(Equal(map[string]string{apinative.UpdatePolicyLabel: "InPlaceIfPossible"}))
		Expect(set.Annotations).To(Equal(map[string]string{"example.io/team": "a"}))
	})

	It("a DaemonSet gets back the strategy that was replaced", short.Spec, func() {
		set := &appsv1.DaemonSet{
			ObjectMeta: w.meta(map[string]string{"insitu.dev/held-max-unavailable": "10%", "insitu.dev/held-max-surge": "0"}),
			Spec: appsv1.DaemonSetSpec{
				Selector: selector, Template: template(newImage),
				UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			},
		}
		set.Labels[apinative.HeldLabel] = apinative.Release
		create(w, set)

		w.reconcile(native.DaemonSet)

		set = get(w, &appsv1.DaemonSet{}, w.name)
		Expect(set.Spec.UpdateStrategy).To(Equal(appsv1.DaemonSetUpdateStrategy{
			Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{
				MaxUnavailable: ptr.To(intstr.FromString("10%")), MaxSurge: ptr.To(intstr.FromInt32(0)),
			},
		}))
		Expect(set.Annotations).NotTo(HaveKey("insitu.dev/held-max-unavailable"))
	})

	It("a workload whose hold was undone is released, and that is said", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Paused = false })
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).NotTo(HaveKey(apinative.HeldLabel))
		Expect(w.told()).To(ConsistOf(HavePrefix("Warning HoldLost ")))
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
	})
})

var _ = Describe("Options that are not accepted", func() {
	DescribeTable("are no reason to hold", func(ctx context.Context, change func(*appsv1.Deployment), told string) {
		w := newWorld(ctx)
		d := w.deployment(change)
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Labels).NotTo(HaveKey(apinative.HeldLabel))
		Expect(d.Spec.Paused).To(BeFalse())
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		Expect(w.told()).To(ConsistOf(And(HavePrefix("Warning InvalidOptions "+told), HaveSuffix("Kubernetes recreates the pods of Deployment "+w.namespace+"/web"))))
	},
		Entry("a value", short.Spec, func(d *appsv1.Deployment) { d.Annotations[apinative.GracePeriodSecondsAnnotation] = "soon" },
			`annotation insitu.dev/gracePeriodSeconds: found "soon", accepted is a number of seconds from 0 to 2147483647; `),
		Entry("the policy itself", func(d *appsv1.Deployment) { d.Labels[apinative.UpdatePolicyLabel] = "InPlace" },
			`label insitu.dev/update-policy: found "InPlace", accepted are InPlaceIfPossible and InPlaceOnly; `),
	)

	DescribeTable("stop a workload that was to stop", func(ctx context.Context, key, value, besides string) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Annotations[key], d.Annotations[apinative.GracePeriodSecondsAnnotation] = value, besides
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.reconcile(native.Deployment)
		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Labels).To(HaveKey(apinative.HeldLabel))
		Expect(d.Annotations[apinative.StatusAnnotation]).To(ContainSubstring(`"state":"InvalidOptions"`))
	},
		Entry("in another spelling", apinative.PausedAnnotation, "yes", "5"),
		Entry("at a partition in another spelling", apinative.PartitionAnnotation, "two", "5"),
		Entry("for its images, in another spelling", apinative.ImagePullAnnotation, "Require", "5"),
		Entry("for its images, beside another option", short.Spec, apinative.ImagePullAnnotation, "{}", "soon"),
		Entry("beside another option", apinative.PausedAnnotation, "true", "soon"),
		Entry("at a partition, beside another option", apinative.PartitionAnnotation, "1", "soon"),
	)

	It("stop a Deployment that goes back: Kubernetes would do nothing about it", func(ctx context.Context) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Annotations[apinative.GracePeriodSecondsAnnotation], d.Spec.Template = "soon", template(oldImage)
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.reconcile(native.Deployment)
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
	})

	It("keep everything as it is under InPlaceOnly, and are named until they are", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Annotations["insitu.dev/gracePeriod"], d.Labels[apinative.UpdatePolicyLabel] = "10", "InPlaceOnly"
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch")).To(Equal([]string{"patch Deployment web"}))
		Expect(get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]).To(And(
			ContainSubstring(`"state":"InvalidOptions"`), ContainSubstring(`"available":2`)))
		Expect(w.told()).To(ConsistOf(HavePrefix("Warning InvalidOptions annotation insitu.dev/gracePeriod is no option of a Deployment: accepted are ")))

		By("looking again")
		w.manager.Forget()
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("")).To(BeEmpty())
		Expect(w.told()).To(BeEmpty())

		By("taking it off")
		d = get(w, &appsv1.Deployment{}, w.name)
		delete(d.Annotations, "insitu.dev/gracePeriod")
		Expect(w.api.Update(w.ctx, d)).To(Succeed())
		w.settle()
		Expect(w.history()).To(ContainElement(HavePrefix("nginx:latest 2 ")))
	})
})
