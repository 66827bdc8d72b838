// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// maxRounds is more than an update takes: of 2 pods, each with its grace period.
const maxRounds = 40

// settle reconciles until the Deployment is released.
func (w *world) settle() {
	GinkgoHelper()
	for range maxRounds {
		w.reconcile(native.Deployment)
		if get(w, &appsv1.Deployment{}, w.name).Labels[apinative.HeldLabel] == "" {
			return
		}
		w.play()
	}
	Fail(fmt.Sprintf("the Deployment is still held: %v", w.manager.Writes("")))
}

// untilPromoted reconciles until a ReplicaSet has got the new template, and nothing
// after that was done.
func (w *world) untilPromoted(rs *appsv1.ReplicaSet) {
	GinkgoHelper()
	for range maxRounds {
		w.observed()
		w.reconcile(native.Deployment)
		w.play()
		if get(w, &appsv1.ReplicaSet{}, rs.Name).Annotations[apinative.PreviousRevisionAnnotation] != "" {
			return
		}
	}
	Fail("it is not promoted")
}

// history returns the ReplicaSets as a user sees them: image, pods, number, cause.
func (w *world) history() []string {
	GinkgoHelper()
	sets := &appsv1.ReplicaSetList{}
	Expect(w.live.List(w.ctx, sets, client.InNamespace(w.namespace))).To(Succeed())
	var seen []string
	for i := range sets.Items {
		rs := &sets.Items[i]
		Expect(rs.Annotations).NotTo(HaveKey(apinative.PreviousRevisionAnnotation))
		Expect(rs.Spec.Template.Labels).To(HaveKeyWithValue("pod-template-hash", rs.Spec.Selector.MatchLabels["pod-template-hash"]))
		seen = append(seen, fmt.Sprintf("%s %d number %s cause %s", rs.Spec.Template.Spec.Containers[0].Image, *rs.Spec.Replicas,
			rs.Annotations["deployment.kubernetes.io/revision"], rs.Annotations["kubernetes.io/change-cause"]))
	}
	slices.Sort(seen)
	return seen
}

var _ = Describe("A held Deployment", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("is updated in place, and its history is true", short.Spec, func() {
		d := w.deployment(nil)
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)

		w.settle()

		pods := &corev1.PodList{}
		Expect(w.live.List(w.ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		for i := range pods.Items {
			Expect(pods.Items[i].Spec.Containers[0].Image).To(Equal(newImage))
			Expect(pods.Items[i].Labels).To(HaveKeyWithValue("pod-template-hash", "old"))
		}
		// The controller of Deployments gives the keeper its new number and cause.
		Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause "}))
		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Spec.Paused).To(BeFalse())
		Expect(d.Annotations).To(Equal(map[string]string{"example.io/team": "a", "deployment.kubernetes.io/revision": "1"}))
		Expect(w.told()).To(ContainElement(MatchRegexp(`^Normal UpdatedInPlace 2 pods run revision [a-z0-9]+$`)))
		w.manager.Forget()
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("")).To(BeEmpty(), "it is at rest")
	})

	It("ends the same when the manager is killed after any write", func() {
		for lives := 1; ; lives++ {
			w = newWorld(w.ctx)
			d := w.deployment(nil)
			twin := w.replicaSet(d, "twin", newImage, 0)
			w.pods(w.replicaSet(d, "old", oldImage, 2))
			w.manager.Lives = lives
			for range maxRounds {
				w.reconcile(native.Deployment)
				if w.manager.IsDead() {
					break
				}
				w.play()
			}
			isOver := !w.manager.IsDead()
			w.manager.Lives = -1

			w.settle()

			Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause "}), "killed after write %d", lives)
			Expect(get(w, &appsv1.ReplicaSet{}, twin.Name).Annotations).To(HaveKeyWithValue("example.io/team", "a"))
			if isOver {
				Expect(lives).To(BeNumerically(">", 8), "some writes were made")
				return
			}
		}
	})

	It("gives away every older ReplicaSet that has its template", func() {
		d := w.deployment(nil)
		w.replicaSet(d, "a", newImage, 0)
		w.replicaSet(d, "b", newImage, 0)
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.settle()

		Expect(w.history()).To(Equal([]string{
			"nginx:alpine 0 number 1 cause first", "nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause ",
		}))
	})

	It("keeps no history where the user wants none", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](0) })
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.settle()

		Expect(w.history()).To(Equal([]string{"nginx:latest 2 number 2 cause "}))
	})

	It("is not handed back before its ReplicaSet has made its pods from the new template", func() {
		d := w.deployment(nil)
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		w.untilPromoted(keeper)
		By("making a pod from the template that the ReplicaSet had a moment ago")
		late := keeper.DeepCopy()
		Expect(w.api.Delete(w.ctx, get(w, &corev1.Pod{}, keeper.Name+"-0"), client.GracePeriodSeconds(0))).To(Succeed())
		late.Spec.Replicas = ptr.To[int32](1)
		w.pods(late)

		w.settle()

		Expect(get(w, &corev1.Pod{}, keeper.Name+"-0").Spec.Containers[0].Image).To(Equal(newImage))
	})

	It("without pods is released at once", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })
		w.replicaSet(d, "old", oldImage, 0)

		w.reconcile(native.Deployment)

		Expect(w.manager.Writes("")).To(Equal([]string{"patch Deployment web", "patch Deployment web"}), "the second as there is no policy")
		Expect(get(w, &appsv1.Deployment{}, w.name).Spec.Paused).To(BeFalse())
	})

	DescribeTable("is released with the reason when its pods have to be recreated", func(change func(*appsv1.Deployment), why string) {
		d := w.deployment(change)
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).NotTo(HaveKey(apinative.HeldLabel))
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		Expect(w.told()).To(ContainElement(And(HavePrefix("Normal ReleasedForRecreation not in place: "), ContainSubstring(why))))
	},
		Entry("for another field", func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true }, "spec.hostNetwork"),
		Entry("for its strategy", func(d *appsv1.Deployment) {
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}, "spec.strategy.type is Recreate"),
		Entry("for a budget of none", func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intOrString("0")), MaxSurge: ptr.To(intOrString("1"))}
		}, "maxUnavailable is 0"),
	)

	It("stays as it is when the user wants no recreation", func() {
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Labels[apinative.UpdatePolicyLabel] = "InPlaceOnly"
			d.Spec.Template.Spec.HostNetwork = true
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Spec.Paused).To(BeTrue())
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(ContainSubstring(`"state":"Stalled"`), ContainSubstring("spec.hostNetwork")))
		Expect(w.told()).To(ContainElement(ContainSubstring("spec.hostNetwork")))
	})

	It("finishes what was begun when its pods are taken off in the middle", func() {
		d := w.deployment(nil)
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		w.untilPromoted(keeper)
		By("scaling it to nothing")
		for _, pod := range []string{keeper.Name + "-0", keeper.Name + "-1"} {
			Expect(w.api.Delete(w.ctx, get(w, &corev1.Pod{}, pod), client.GracePeriodSeconds(0))).To(Succeed())
		}
		for _, obj := range []client.Object{get(w, &appsv1.ReplicaSet{}, keeper.Name), get(w, &appsv1.Deployment{}, w.name)} {
			Expect(w.api.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))).To(Succeed())
		}
		w.play()

		w.settle()

		Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 0 number 1 cause "}))
	})

	It("leaves its history true when another client ends the hold in the middle", func() {
		d := w.deployment(nil)
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		w.untilPromoted(keeper)
		d = get(w, &appsv1.Deployment{}, w.name)
		delete(d.Labels, apinative.HeldLabel)
		d.Spec.Paused = false
		Expect(w.api.Update(w.ctx, d)).To(Succeed())

		w.reconcile(native.Deployment)

		Expect(w.history()).To(Equal([]string{"nginx:alpine 0 number 1 cause first", "nginx:latest 2 number 1 cause "}))
		w.manager.Forget()
		w.reconcile(native.Deployment)
		Expect(w.manager.Writes("")).To(BeEmpty())
	})

	It("that goes back leaves nothing of the update on its ReplicaSet", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Template = template(oldImage) })
		keeper := get(w, &appsv1.ReplicaSet{}, w.replicaSet(d, "old", oldImage, 2).Name)
		keeper.Annotations["insitu.dev/paused"], keeper.Annotations["insitu.dev/status"] = "true", "{}"
		Expect(w.api.Update(w.ctx, keeper)).To(Succeed())
		w.observe(keeper.Name)
		w.pods(keeper)

		w.settle()

		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Annotations).To(Equal(map[string]string{
			"deployment.kubernetes.io/revision": "1", "kubernetes.io/change-cause": "first",
		}))
	})

	It("gives no number twice when it is overtaken in the middle", func() {
		d := w.deployment(nil)
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		w.untilPromoted(keeper)
		d = get(w, &appsv1.Deployment{}, w.name)
		d.Spec.Template.Spec.Containers[0].Image = "nginx:3"
		Expect(w.api.Update(w.ctx, d)).To(Succeed())

		w.settle()

		Expect(w.history()).To(Equal([]string{
			"nginx:3 2 number 2 cause ", "nginx:alpine 0 number 1 cause first", "nginx:latest 0 number 2 cause ",
		}), "the number of the keeper is for the controller of Deployments to raise")
	})

	It("with the longest name is updated like any other", func() {
		w.name = strings.Repeat("w", 63)
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.settle()

		Expect(w.history()).To(ContainElement(HavePrefix("nginx:latest 2 ")))
	})

	It("whose pods go back to what their ReplicaSet has is not released before they are", func() {
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intOrString("0")), MaxSurge: ptr.To(intOrString("1"))}
			d.Spec.Template = template(oldImage)
		})
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)
		pod := get(w, &corev1.Pod{}, keeper.Name+"-1")
		pod.Spec.Containers[0].Image = newImage
		Expect(w.api.Update(w.ctx, pod)).To(Succeed())
		// What it was updated to is in the history.
		other := d.DeepCopy()
		other.Spec.Template.Spec.Containers[0].Image = newImage
		w.labelRevision(pod, other)

		w.settle()

		Expect(get(w, &corev1.Pod{}, keeper.Name+"-1").Spec.Containers[0].Image).To(Equal(oldImage))
		Expect(w.told()).NotTo(ContainElement(ContainSubstring("ReleasedForRecreation")))
	})

	It("gets the template of its ReplicaSet to the letter", func() {
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Spec.Template = template(oldImage)
			d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
		})
		keeper := w.replicaSet(d, "old", oldImage, 2)
		w.pods(keeper)

		w.settle()

		Expect(get(w, &appsv1.ReplicaSet{}, keeper.Name).Spec.Template.Spec.Containers[0].SecurityContext).NotTo(BeNil(),
			"its controller would make another ReplicaSet, and recreate the pods")
	})

	It("says what the server refuses beside the pods", func() {
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "create ControllerRevision") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, "", errors.New("exceeded quota: small"))
			}
			return nil
		}

		r := native.NewReconciler(native.Deployment, w.manager, w.live, w.recorder, w.clock)
		r.PullAs(stage.NoPulls())
		_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})

		Expect(err).To(MatchError(ContainSubstring("exceeded quota: small")))
		status := get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]
		Expect(status).To(And(ContainSubstring(`"state":"Stalled"`), ContainSubstring("exceeded quota: small")))
		Expect(w.told()).To(ConsistOf(And(HavePrefix("Warning Stalled "), ContainSubstring("exceeded quota: small"))))
	})

	It("waits a minute for a pod of an unfinished rollout that is not ready", func() {
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 1))
		stuck := w.replicaSet(d, "stuck", "nginx:never-ready", 1)
		w.pods(stuck)
		w.notReady(stuck.Name+"-0", func(*corev1.ContainerStatus) {})

		result := w.reconcile(native.Deployment)

		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).To(HaveKey(apinative.HeldLabel))
		Expect(result.RequeueAfter).To(BeNumerically("<=", time.Minute))
		Expect(result.RequeueAfter).NotTo(BeZero())
		w.clock.Step(time.Minute)
		w.reconcile(native.Deployment)
		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).NotTo(HaveKey(apinative.HeldLabel))
		Expect(w.told()).To(ContainElement(ContainSubstring("pod web-stuck-0 of an unfinished rollout is not ready")))
	})

	It("is released when a broken pod that is not updated takes all the room", func() {
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 1))
		stuck := w.replicaSet(d, "stuck", "nginx:no-such-tag", 1)
		w.pods(stuck)
		w.notReady(stuck.Name+"-0", func(status *corev1.ContainerStatus) {
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		})

		w.reconcile(native.Deployment)

		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).NotTo(HaveKey(apinative.HeldLabel))
		Expect(w.told()).To(ContainElement(ContainSubstring("pod web-stuck-0 of an unfinished rollout is not ready")))
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
	})
})
