// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("A hold without progress", func() {
	// patience is progressDeadlineSeconds, and what a pod may take to be drained and to stop.
	const patience = (600 + 5 + 30) * time.Second

	var w *world
	var manager *native.Reconciler
	begin := func() {
		manager = native.NewReconciler(native.Deployment, w.manager, w.live, w.recorder, w.clock)
		manager.PullAs(stage.NoPulls())
		manager.WriteInOrder()
	}
	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		begin()
	})

	isRefused := false
	refuse := func(part, why string) {
		isRefused = false
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.Contains(write, part) {
				isRefused = true
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(why))
			}
			return nil
		}
	}
	// reconcile takes errors for what they are: the API server refuses.
	reconcile := func() ctrl.Result {
		result, _ := manager.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: w.name}})
		return result
	}
	isHeld := func() bool {
		return get(w, &appsv1.Deployment{}, w.name).Labels[apinative.HeldLabel] == apinative.Held
	}

	DescribeTable("ends, and says what kept it", func(refused, why, told string) {
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		refuse(refused, why)

		for !isRefused {
			reconcile()
			w.play()
		}
		reconcile()
		Expect(isHeld()).To(BeTrue())
		w.clock.Step(patience - 12*time.Second)
		result := reconcile()
		Expect(isHeld()).To(BeTrue())
		if result.RequeueAfter > 0 {
			Expect(result.RequeueAfter).To(BeNumerically("<=", 13*time.Second), "nothing but time brings it back")
		}
		w.told()
		w.clock.Step(13 * time.Second)
		reconcile()

		Expect(isHeld()).To(BeFalse())
		Expect(w.told()).To(ContainElement(And(
			HavePrefix("Warning HoldTimedOut no progress for 10m35s: "), ContainSubstring(told),
			HaveSuffix("Kubernetes goes on with Deployment "+w.namespace+"/web, and may recreate its pods"))))
		Expect(get(w, &appsv1.Deployment{}, w.name).Annotations).NotTo(HaveKey(apinative.StatusAnnotation))
	},
		Entry("a policy that refuses changes of pods, and not new ones", short.Spec, "patch Pod", "images are frozen", "images are frozen"),
		Entry("a quota of what is kept beside the pods", "create ControllerRevision", "exceeded quota: small", "exceeded quota: small"),
		Entry("a policy that refuses what ends the update", "patch ReplicaSet", "ReplicaSets are frozen", "ReplicaSets are frozen"),
		Entry("a quota that refuses what ends the update", "create ReplicaSet", "exceeded quota: sets", "exceeded quota: sets"),
	)

	It("ends also when a pod goes out of service and comes back all the time", func() {
		w.pods(w.replicaSet(w.deployment(nil), "old", oldImage, 2))
		refuse("patch Pod web-old-1", "images are frozen")
		w.run(get(w, &corev1.Pod{}, "web-old-0"), "1")
		for range 200 {
			reconcile()
			if !isHeld() {
				break
			}
			w.clock.Step(5 * time.Second)
			flapping := get(w, &corev1.Pod{}, "web-old-1")
			if w.clock.Now().Second()%2 == 0 {
				w.run(flapping, "1")
			} else {
				w.notReady(flapping.Name, func(status *corev1.ContainerStatus) { status.Ready = false })
			}
			w.play()
		}
		Expect(isHeld()).To(BeFalse())
	})

	It("has its whole time with a manager that has just begun", func() {
		w.pods(w.replicaSet(w.deployment(nil), "old", oldImage, 2))
		refuse("patch Pod", "images are frozen")
		reconcile()
		for range 3 {
			w.clock.Step(patience - time.Minute)
			begin()
			reconcile()
			Expect(isHeld()).To(BeTrue())
		}
	})

	It("has its whole time when what protects it ends, and for a new template", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Annotations[apinative.PausedAnnotation] = "true" })
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		refuse("patch Pod", "images are frozen")
		reconcile()
		w.clock.Step(time.Hour)
		reconcile()

		By("resuming it")
		d = get(w, &appsv1.Deployment{}, w.name)
		delete(d.Annotations, apinative.PausedAnnotation)
		Expect(w.api.Update(w.ctx, d)).To(Succeed())
		reconcile()
		Expect(isHeld()).To(BeTrue())

		By("changing the template")
		w.clock.Step(patience - time.Minute)
		reconcile()
		d = get(w, &appsv1.Deployment{}, w.name)
		d.Spec.Template.Spec.Containers[0].Image = "nginx:third"
		Expect(w.api.Update(w.ctx, d)).To(Succeed())
		reconcile()
		w.clock.Step(2 * time.Minute)
		reconcile()
		Expect(isHeld()).To(BeTrue())
		w.clock.Step(patience)
		reconcile()
		Expect(isHeld()).To(BeFalse())
	})

	DescribeTable("goes on", func(change func(*appsv1.Deployment)) {
		d := w.deployment(change)
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		refuse("patch Pod", "images are frozen")
		for range 3 {
			reconcile()
			w.clock.Step(time.Hour)
		}
		Expect(isHeld()).To(BeTrue())
	},
		Entry("that the user wants in place only", func(d *appsv1.Deployment) { d.Labels[apinative.UpdatePolicyLabel] = "InPlaceOnly" }),
		Entry("that the user has paused", func(d *appsv1.Deployment) { d.Annotations[apinative.PausedAnnotation] = "true" }),
		Entry("whose partition is reached", func(d *appsv1.Deployment) { d.Annotations[apinative.PartitionAnnotation] = "100%" }),
		Entry("whose partition keeps a pod", func(d *appsv1.Deployment) { d.Annotations[apinative.PartitionAnnotation] = "1" }),
		Entry("that has no deadline", func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](2147483647) }),
	)

	It("goes on while images that are required are not on the nodes of its pods", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Annotations[apinative.ImagePullAnnotation] = "{}" })
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		for _, status := range []corev1.ContainerState{
			{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
		} {
			for range 3 {
				reconcile()
				reconcile() // one that failed long ago is deleted, and made again
				w.pullers(status)
				reconcile()
				Expect(isHeld()).To(BeTrue())
				w.clock.Step(time.Hour)
			}
		}
		for _, name := range []string{"web-old-0", "web-old-1"} {
			Expect(get(w, &corev1.Pod{}, name).Labels).NotTo(HaveKey("insitu.dev/drained"))
		}
	})

	It("ends while an image cannot be pulled that no user requires: only then Kubernetes tells its clients", func() {
		manager.PullAs(&executor.Pulling{})
		d := w.deployment(nil)
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		failing := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
		for _, step := range []time.Duration{0, patience / 2, patience/2 - time.Second} {
			w.clock.Step(step)
			reconcile()
			reconcile()
			w.pullers(failing)
			reconcile()
			Expect(isHeld()).To(BeTrue(), "after %s", step)
		}
		w.clock.Step(2 * time.Second)
		reconcile()
		Expect(isHeld()).To(BeFalse())
		Expect(w.told()).To(ContainElement(And(ContainSubstring("HoldTimedOut"), ContainSubstring("cannot pull"))))
	})

	It("goes on when its pods go back to what their ReplicaSet has: nothing else would bring them there", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Template = template(oldImage) })
		rs := w.replicaSet(d, "old", oldImage, 2)
		w.pods(rs)
		ahead := get(w, &corev1.Pod{}, rs.Name+"-0")
		w.labelRevision(ahead, &appsv1.Deployment{ObjectMeta: d.ObjectMeta, Spec: appsv1.DeploymentSpec{Template: template(newImage)}})
		refuse("patch Pod", "images are frozen")
		for range 3 {
			reconcile()
			w.clock.Step(time.Hour)
		}
		Expect(isHeld()).To(BeTrue())
	})

	It("goes on when nothing but the new revision fails, as new pods of it would", func() {
		d := w.deployment(nil)
		rs := w.replicaSet(d, "old", oldImage, 2)
		w.pods(rs)
		updated := func() *corev1.Pod {
			for _, name := range []string{rs.Name + "-0", rs.Name + "-1"} {
				if pod := get(w, &corev1.Pod{}, name); pod.Spec.Containers[0].Image == newImage {
					return pod
				}
			}
			return nil
		}
		for updated() == nil {
			w.reconcile(native.Deployment)
			if updated() == nil {
				w.play()
			}
		}
		w.run(updated(), "2")
		w.notReady(updated().Name, func(status *corev1.ContainerStatus) {
			status.Ready = false
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		})
		for range 3 {
			reconcile()
			w.clock.Step(time.Hour)
		}
		Expect(isHeld()).To(BeTrue())
		Expect(get(w, &appsv1.Deployment{}, w.name).Annotations[apinative.StatusAnnotation]).To(Or(
			ContainSubstring(`"state":"Stalled"`), ContainSubstring(`"state":"ProgressDeadlineExceeded"`)))
	})
})
