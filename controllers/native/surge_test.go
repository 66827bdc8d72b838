// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
)

// surging makes a held Deployment one that is held by a pod more, and whose controller has
// seen the template.
func surging(change func(*appsv1.Deployment)) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Paused = false
		d.Spec.MinReadySeconds, d.Spec.ProgressDeadlineSeconds = apinative.HeldMinReadySeconds, ptr.To(apinative.HeldProgressDeadlineSeconds)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intOrString(apinative.HeldMaxUnavailable)), MaxSurge: ptr.To(intOrString(apinative.HeldMaxSurge)),
		}
		d.Annotations["deployment.kubernetes.io/revision"] = "2"
		maps.Copy(d.Annotations, map[string]string{
			apinative.HeldMaxUnavailableAnnotation: "0", apinative.HeldMaxSurgeAnnotation: "1",
			apinative.HeldMinReadySecondsAnnotation: "0", apinative.HeldProgressDeadlineSecondsAnnotation: "600",
		})
		if change != nil {
			change(d)
		}
	}
}

// newPod is what Kubernetes does in such a hold: it makes a pod of the new template.
func (w *world) newPod(d *appsv1.Deployment, image string) (*appsv1.ReplicaSet, *corev1.Pod) {
	GinkgoHelper()
	rs := w.replicaSet(d, "new", image, 1)
	before := rs.DeepCopy()
	rs.Spec.MinReadySeconds = apinative.HeldMinReadySeconds
	rs.Annotations["deployment.kubernetes.io/revision"] = "2"
	for key := range d.Annotations {
		if rs.Annotations[key] == "" {
			rs.Annotations[key] = d.Annotations[key]
		}
	}
	Expect(w.api.Patch(w.ctx, rs, client.MergeFrom(before))).To(Succeed())
	w.observe(rs.Name)
	w.pods(rs)
	return rs, get(w, &corev1.Pod{}, rs.Name+"-0")
}

// refusedPod is what Kubernetes does where a quota leaves no room for that pod.
func (w *world) refusedPod(d *appsv1.Deployment, image string) *appsv1.ReplicaSet {
	GinkgoHelper()
	rs, pod := w.newPod(d, image)
	Expect(w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
	before := rs.DeepCopy()
	rs.Status.Replicas = 0
	rs.Status.Conditions = []appsv1.ReplicaSetCondition{{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: small",
		LastTransitionTime: metav1.NewTime(w.clock.Now()),
	}}
	Expect(w.api.Status().Patch(w.ctx, rs, client.MergeFrom(before))).To(Succeed())
	w.observed()
	return rs
}

// promotedWithoutNewPod returns the ReplicaSet of the updated pods, which has got the new
// template a moment ago, and that of the pod more, which was refused so far.
func (w *world) promotedWithoutNewPod() (keeper, refused *appsv1.ReplicaSet) {
	GinkgoHelper()
	d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.MaxUnavailableAnnotation] = "1" }))
	keeper = w.replicaSet(d, "old", oldImage, 2)
	w.pods(keeper)
	refused = w.refusedPod(d, newImage)
	w.untilPromoted(keeper)
	return keeper, refused
}

// observed is what the controller of Deployments says.
func (w *world) observed() {
	GinkgoHelper()
	d := get(w, &appsv1.Deployment{}, w.name)
	before := d.DeepCopy()
	d.Status.ObservedGeneration = d.Generation
	Expect(w.api.Status().Patch(w.ctx, d, client.MergeFrom(before))).To(Succeed())
}

// settleSurging is settle beside a controller that sees the Deployment.
func (w *world) settleSurging() {
	GinkgoHelper()
	for range maxRounds {
		w.observed()
		w.reconcile(native.Deployment)
		d := get(w, &appsv1.Deployment{}, w.name)
		if d.Labels[apinative.HeldLabel] == "" {
			return
		}
		Expect(d.Annotations[apinative.StatusAnnotation]).NotTo(And(ContainSubstring("2 of 2 pods are updated"), ContainSubstring("does not serve yet")),
			"nothing waits for the pod more any longer")
		w.play()
	}
	Fail("the Deployment is still held")
}

var _ = Describe("A Deployment that is held by a pod more", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("is updated in place when that pod serves, and becomes what it was", short.Spec, func() {
		d := w.deployment(surging(nil))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		_, pod := w.newPod(d, newImage)
		w.notReady(pod.Name, func(status *corev1.ContainerStatus) { status.Ready = false })
		w.observed()

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(BeEmpty(), "the new template has not been proved")
		status := get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]
		Expect(status).To(And(ContainSubstring(`"state":"Updating"`), ContainSubstring("pod web-new-0 of the new template does not serve yet")))

		By("letting it serve")
		w.run(get(w, &corev1.Pod{}, pod.Name), "1")
		w.settleSurging()

		Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause "}),
			"the ReplicaSet of the new pod has the template before, and no pod")
		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Spec.Paused).To(BeFalse())
		Expect(d.Spec.MinReadySeconds).To(BeZero())
		Expect(d.Spec.ProgressDeadlineSeconds).To(HaveValue(BeEquivalentTo(600)))
		Expect(d.Spec.Strategy.RollingUpdate).To(Equal(&appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intOrString("0")), MaxSurge: ptr.To(intOrString("1"))}))
		Expect(d.Annotations).To(Equal(map[string]string{"example.io/team": "a", "deployment.kubernetes.io/revision": "2"}))

		By("looking at what the controller of Deployments has copied meanwhile")
		for range 5 {
			w.reconcile(native.Deployment)
		}
		sets := &appsv1.ReplicaSetList{}
		Expect(w.live.List(w.ctx, sets, client.InNamespace(w.namespace))).To(Succeed())
		for i := range sets.Items {
			for key := range sets.Items[i].Annotations {
				Expect(key).NotTo(HavePrefix("insitu.dev/held-"), sets.Items[i].Name)
			}
		}
	})

	It("takes one pod out of service at a time, as the pod more gives room", func() {
		d := w.deployment(surging(nil))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.newPod(d, newImage)
		w.observed()
		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(HaveLen(1))
	})

	It("touches no pod while the new one cannot be made, and says why", short.Spec, func() {
		d := w.deployment(surging(nil))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.refusedPod(d, newImage)

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		status := get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]
		Expect(status).To(And(ContainSubstring(`"state":"Stalled"`), ContainSubstring("exceeded quota: small"), ContainSubstring("maxUnavailable is 0")))

		By("allowing that one pod is unavailable")
		d = get(w, &appsv1.Deployment{}, w.name)
		d.Annotations[apinative.HeldMaxUnavailableAnnotation] = "1"
		Expect(w.api.Update(w.ctx, d)).To(Succeed())
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(1))
	})

	It("is not promoted before Kubernetes has made the ReplicaSet of the template", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) {
			d.Annotations["deployment.kubernetes.io/revision"] = "1"
			d.Spec.Template = template(oldImage)
			d.Spec.Template.Labels["tier"] = "web"
		}))
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		for range 4 {
			w.observed() // the number of the Deployment is still that of the keeper
			w.reconcile(native.Deployment)
			w.play()
		}
		Expect(get(w, &corev1.Pod{}, keeper.Name+"-0").Labels).To(HaveKey("tier"), "labels wait for no pod")
		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Annotations).NotTo(HaveKey(apinative.PreviousRevisionAnnotation))
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
	})

	It("stays when its user pauses it, and starts no pod", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Spec.Paused = true }))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.newPod(d, newImage)
		w.observed()

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		status := get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]
		Expect(status).To(And(ContainSubstring(`"state":"Paused"`), ContainSubstring("spec.paused")))
	})

	It("gets its fields back when it has lost its label alone", func() {
		w.deployment(surging(func(d *appsv1.Deployment) { delete(d.Labels, apinative.HeldLabel) }))

		w.reconcile(native.Deployment)

		d := get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Spec.MinReadySeconds).To(BeZero())
		Expect(d.Spec.Strategy.RollingUpdate.MaxUnavailable).To(HaveValue(Equal(intOrString("0"))))
		Expect(d.Annotations).NotTo(HaveKey(HavePrefix("insitu.dev/held-")))
	})

	It("says that its partition is reached, beside the new pod", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.PartitionAnnotation] = "1" }))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.newPod(d, newImage)
		for range 10 {
			w.observed()
			w.reconcile(native.Deployment)
			w.play()
			w.clock.Step(6 * time.Second)
		}

		status := get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]
		Expect(status).To(And(ContainSubstring(`"state":"PartitionReached"`), ContainSubstring("1 of 2 pods are updated"),
			ContainSubstring("pod web-new-0 runs the new template beside them")))
	})

	It("stays held when it is scaled to a pod that is updated: more would be made as the partition keeps them", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.PartitionAnnotation] = "1" }))
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		w.newPod(d, newImage)
		goOn := func() {
			for range 10 {
				w.observed()
				w.reconcile(native.Deployment)
				w.play()
				w.clock.Step(6 * time.Second)
			}
		}
		goOn()
		patch := func(obj client.Object, patch string) {
			Expect(w.api.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		for i := range 2 {
			if pod := get(w, &corev1.Pod{}, fmt.Sprintf("%s-%d", keeper.Name, i)); pod.Spec.Containers[0].Image == oldImage {
				Expect(w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
			}
		}
		patch(keeper, `{"spec":{"replicas":1}}`)
		patch(d, `{"spec":{"replicas":1}}`)
		goOn()
		w.clock.Step(time.Hour)
		goOn()

		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Labels).To(HaveKeyWithValue(apinative.HeldLabel, apinative.Held))
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(ContainSubstring(`"state":"PartitionReached"`), ContainSubstring("1 of 1 pods are updated")))
		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Spec.Template.Spec.Containers[0].Image).To(Equal(oldImage))

		patch(d, `{"metadata":{"annotations":{"insitu.dev/partition":"0","insitu.dev/paused":"true"}}}`)
		goOn()
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKeyWithValue(apinative.HeldLabel, apinative.Held), "a pause does the same")
		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Spec.Template.Spec.Containers[0].Image).To(Equal(oldImage))

		patch(d, `{"metadata":{"annotations":{"insitu.dev/paused":null}}}`)
		w.settleSurging()
		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Spec.Template.Spec.Containers[0].Image).To(Equal(newImage))
	})

	It("keeps to its ReplicaSet when scaling gives the other one more pods", short.Spec, func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }))
		w.pods(w.replicaSet(d, "old", oldImage, 1))
		rs, _ := w.newPod(d, newImage)
		w.observed()
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("patch Pod")).To(ConsistOf(ContainSubstring("web-old-0")))

		By("scaling from 1 to 4, which Kubernetes shares among both")
		for _, scaled := range []client.Object{get(w, &appsv1.ReplicaSet{}, rs.Name), get(w, &appsv1.Deployment{}, w.name)} {
			Expect(w.api.Patch(w.ctx, scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`)))).To(Succeed())
		}
		w.observed()
		w.play()
		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(HaveEach(ContainSubstring("web-old-0")))
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
	})

	It("is drained before it goes", func() {
		d := w.deployment(surging(nil))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		_, pod := w.newPod(d, newImage)
		w.settleSurging()

		Expect(get(w, &corev1.Pod{}, pod.Name).Labels).To(HaveKey(appsv1beta1.DrainedLabel))
		Expect(w.manager.Writes("patch ReplicaSet")).NotTo(BeEmpty())
	})

	It("goes by the annotation where no pod more can be made", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.MaxUnavailableAnnotation] = "1" }))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.refusedPod(d, newImage)

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(HaveLen(1))
	})

	It("says what it was made from, before its ReplicaSet is another one in the history", short.Spec, func() {
		keeper, rs := w.promotedWithoutNewPod()

		By("making the pod at last")
		w.pods(rs)
		w.settleSurging()

		Expect(get(w, &appsv1.ReplicaSet{}, rs.Name).Spec.Template.Spec.Containers[0].Image).To(Equal(oldImage))
		made, stays := get(w, &corev1.Pod{}, rs.Name+"-0"), get(w, &corev1.Pod{}, keeper.Name+"-0")
		Expect(made.Labels[appsv1.ControllerRevisionHashLabelKey]).To(And(Not(BeEmpty()), Equal(stays.Labels[appsv1.ControllerRevisionHashLabelKey])))
	})

	It("leaves a ReplicaSet alone with which Kubernetes has gone on after a release", short.Spec, func() {
		_, rs := w.promotedWithoutNewPod()

		By("releasing it when Kubernetes has made the pod at last")
		w.pods(rs)
		Expect(w.api.Patch(w.ctx, get(w, &appsv1.Deployment{}, w.name), client.RawPatch(types.MergePatchType, []byte(`{
			"metadata": {"labels": {"insitu.dev/held": null}}, "spec": {"minReadySeconds": 0, "progressDeadlineSeconds": 600}}`)))).To(Succeed())
		for range 5 {
			w.reconcile(native.Deployment)
		}

		Expect(w.history()).To(ConsistOf(
			HavePrefix("nginx:latest 1 "), HavePrefix("nginx:latest 2 "), "nginx:alpine 0 number 1 cause first"), "the template before is in an empty one")
	})

	It("leaves no mark of its choice on a ReplicaSet without pods", func() {
		d := w.deployment(func(d *appsv1.Deployment) { delete(d.Labels, apinative.HeldLabel); d.Spec.Paused = false })
		rs := w.replicaSet(d, "old", oldImage, 0)
		before := rs.DeepCopy()
		rs.Annotations[apinative.KeeperAnnotation] = string(rs.UID)
		Expect(w.api.Patch(w.ctx, rs, client.MergeFrom(before))).To(Succeed())
		w.pods(w.replicaSet(d, "new", newImage, 2))

		w.reconcile(native.Deployment)

		Expect(get(w, &appsv1.ReplicaSet{}, rs.Name).Annotations).NotTo(HaveKey(apinative.KeeperAnnotation))
	})

	It("keeps as many pods as the partition says, also when scaling has given the other ReplicaSet more", short.Spec, func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) {
			d.Annotations[apinative.PartitionAnnotation] = "1"
			d.Annotations[apinative.HeldMaxUnavailableAnnotation] = "1"
			d.Spec.Replicas = ptr.To[int32](2)
		}))
		w.pods(w.replicaSet(d, "old", oldImage, 1))
		rs, _ := w.newPod(d, newImage)
		Expect(w.api.Patch(w.ctx, get(w, &appsv1.ReplicaSet{}, rs.Name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)))).To(Succeed())
		w.observed()
		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
	})

	It("may pull its image for minutes before the others go on without it", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.HeldMaxUnavailableAnnotation] = "1" }))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		_, pod := w.newPod(d, newImage)
		before := pod.DeepCopy()
		pod.Status.Phase, pod.Status.Conditions = corev1.PodPending, nil
		pod.Status.ContainerStatuses[0].Ready = false
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
		w.observed()
		w.clock.SetTime(pod.CreationTimestamp.Add(4 * time.Minute))
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())

		w.clock.SetTime(pod.CreationTimestamp.Add(5 * time.Minute))
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(1))
	})

	It("stays drained for a grace period that is longer than a minute, and goes before the hold ends", func() {
		d := w.deployment(surging(func(d *appsv1.Deployment) { d.Annotations[apinative.GracePeriodSecondsAnnotation] = "120" }))
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		rs, pod := w.newPod(d, newImage)
		for range 40 {
			w.observed()
			w.reconcile(native.Deployment)
			if _, is := get(w, &corev1.Pod{}, pod.Name).Labels[appsv1beta1.DrainedLabel]; is {
				break
			}
			w.play()
			w.clock.Step(30 * time.Second)
		}
		Expect(get(w, &corev1.Pod{}, pod.Name).Labels).To(HaveKey(appsv1beta1.DrainedLabel))

		for range 3 { // 90 s
			w.clock.Step(30 * time.Second)
			w.observed()
			w.reconcile(native.Deployment)
			Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
			Expect(get(w, &appsv1.ReplicaSet{}, rs.Name).Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), "its grace period is not over")
		}
		w.clock.Step(40 * time.Second)
		w.settleSurging()
		Expect(get(w, &appsv1.ReplicaSet{}, rs.Name).Spec.Replicas).To(HaveValue(BeZero()), "it went before the hold ended")
	})
})
