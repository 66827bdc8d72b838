// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// refuseImage makes a ValidatingAdmissionPolicy for the namespace that refuses to
// change a pod to an image, and waits until the API server acts on it. The
// returned function deletes it, and waits as well.
func (w *world) refuseImage(image string) (allow func()) {
	GinkgoHelper()
	name := "no-such-image." + w.namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.spec.containers.all(c, c.image != '%s')", image),
				Message:    "image " + image + " is not approved",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}
	probe := barePod(w.namespace, "probe", nil)
	Expect(w.api.Create(w.ctx, probe)).To(Succeed())
	Expect(w.api.Create(w.ctx, policy)).To(Succeed())
	Expect(w.api.Create(w.ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(w.api.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(w.api.Delete(ctx, policy))).To(Succeed())
	})
	try := func() error {
		body := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"image":%q}]}}`, probe.Spec.Containers[0].Name, image)
		return w.api.Patch(w.ctx, probe.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body)),
			client.DryRunAll, client.DisableReadYourWritesConsistency)
	}
	Eventually(try).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("is not approved")))
	Expect(w.api.Delete(w.ctx, probe, client.GracePeriodSeconds(0))).To(Succeed())
	return func() {
		GinkgoHelper()
		probe = barePod(w.namespace, "probe", nil)
		Expect(w.api.Create(w.ctx, probe)).To(Succeed())
		Expect(w.api.Delete(w.ctx, binding)).To(Succeed())
		Eventually(try).WithTimeout(time.Minute).Should(Succeed())
		Expect(w.api.Delete(w.ctx, probe, client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// rounds lets reconciler and kubelet take turns, with a second between them.
func (w *world) rounds(n int, look func()) {
	GinkgoHelper()
	for range n {
		w.reconcile()
		look()
		w.clock.Step(time.Second)
		w.kubelet.Sync(w.ctx)
		look()
	}
}

func (w *world) expectAllInService() {
	GinkgoHelper()
	for name, pod := range w.pods() {
		Expect(stage.PodConditionStatus(pod, appsv1beta1.InPlaceUpdateReady)).To(Equal(corev1.ConditionTrue), name)
		Expect(stage.PodConditionStatus(pod, corev1.PodReady)).To(Equal(corev1.ConditionTrue), name)
	}
}

// expectDenied checks that status and events say who refuses what.
func (w *world) expectDenied(words string) {
	GinkgoHelper()
	set := w.refresh()
	Expect(conditionOf(set, appsv1beta1.ConditionStalled)).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonAdmissionDenied), HaveField("Message", ContainSubstring(words))))
	Expect(conditionOf(set, appsv1beta1.ConditionFailedUpdatePod).Message).To(ContainSubstring(words))
	Expect(set.Status.Blockers).To(And(Not(BeEmpty()), HaveEach(And(
		HaveField("Step", string(inplace.Stuck)), HaveField("Reason", inplace.ReasonAdmissionDenied), HaveField("Message", ContainSubstring(words))))))
}

// unanswered is a refusal that says nothing of the change.
func unanswered() error {
	return apierrors.NewServiceUnavailable("come back later")
}

func setLabel(set *appsv1beta1.StatefulSet) {
	set.Spec.Template.Labels["tier"] = "backend"
}

var _ = Describe("A recreation", func() {
	DescribeTable("of what the API server would not accept deletes nothing", func(ctx context.Context, words string, change func(*appsv1beta1.StatefulSet)) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		before := w.refresh().Spec.Template.DeepCopy()
		uids := w.uids()
		w.change(change)
		w.rounds(20, w.expectAllInService)

		Expect(w.uids()).To(Equal(uids))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonRecreationDenied), HaveField("Message", ContainSubstring(words))))
		Expect(w.recorder.Events(inplace.ReasonRecreationDenied)).To(HaveLen(2), "on the set and on a pod")

		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template = *before })
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
		})
		w.settle()
		w.expectSettled(3)
		for name, uid := range w.uids() {
			Expect(uid).NotTo(Equal(uids[name]))
		}
	},
		Entry("for a priority class that is not there", short.Spec, "no PriorityClass with name golden was found",
			func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.PriorityClassName = "golden" }),
		Entry("for a mount without a volume", `volumeMounts[0].name: Not found: "cahce"`, func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cahce", MountPath: "/more"}}
		}),
	)

	It("of a pod that a user asks for deletes nothing if it could not be made again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(3))
		uids := w.uids()
		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.PriorityClassName = "golden" })
		w.settle()
		w.label("sample-0", appsv1beta1.SpecifiedDeleteKey, "true")
		w.settle()
		Expect(w.uids()["sample-0"]).NotTo(Equal(uids["sample-0"]), "it comes back at the revision that the partition keeps")
		w.expectAllInService()

		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2) })
		w.label("sample-2", appsv1beta1.SpecifiedDeleteKey, "true")
		w.rounds(10, w.expectAllInService)
		Expect(w.uids()["sample-2"]).To(Equal(uids["sample-2"]))
	})
})

var _ = Describe("A change that the API server refuses", func() {
	It("drains nothing, and heals when the policy is gone", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		allow := w.refuseImage("nginx:latest")
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.rounds(10, w.expectAllInService)

		w.expectDenied("ValidatingAdmissionPolicy 'no-such-image." + w.namespace + "' with binding 'no-such-image." + w.namespace +
			"' denied request: image nginx:latest is not approved")
		Expect(w.status().Blockers).To(HaveLen(3))
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		Expect(w.manager.Tries()).To(Equal([]string{"sample-2", "sample-1"}), "two pods speak for the third")
		Expect(w.recorder.Events(inplace.ReasonAdmissionDenied)).To(HaveLen(4), "on the set and on each of the two pods")

		since := w.status().Blockers[0].Since
		w.manager.Forget()
		w.clock.Step(15 * time.Second)
		w.rounds(10, w.expectAllInService)
		Expect(w.manager.Tries()).To(Equal([]string{"sample-2", "sample-1"}), "they are asked again")
		Expect(w.manager.Writes("")).To(BeEmpty(), "and nothing is written about it")
		Expect(w.status().Blockers[0].Since).To(Equal(since))
		Expect(w.recorder.Events(inplace.ReasonAdmissionDenied)).To(HaveLen(4), "what was told is not told again")

		allow()
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(same("nginx:latest")))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		w.expectNoWrites()
	})

	It("asks again after 15 seconds, without an event", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.refuse("patch Pod sample", apierrors.NewInternalError(errors.New(`failed calling webhook "deny.example.io": connection refused`)))
		w.setImage("nginx:latest")
		Expect(w.reconcile().RequeueAfter).To(Equal(15 * time.Second))
		w.expectDenied(`failed calling webhook "deny.example.io"`)
		w.manager.Before = nil
		w.clock.Step(15 * time.Second)
		w.settle()
		w.expectSettled(3)
	})

	It("can be taken back, and another can be made", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.refuseImage("nginx:latest")
		w.setImage("nginx:latest")
		w.rounds(3, w.expectAllInService)
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.restarts()).To(Equal(same[int32](0)))

		w.setImage("nginx:latest")
		w.rounds(3, w.expectAllInService)
		w.setImage("nginx:third")
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(same("nginx:third")))
		Expect(w.uids()).To(Equal(uids))
	})

	It("is tried once when it is accepted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Tries()).To(Equal([]string{"sample-2"}))

		w.manager.Forget()
		w.setImage("nginx:alpine")
		w.settle()
		Expect(w.manager.Tries()).To(HaveLen(1), "once for each revision: the policies may be others")
	})

	It("is not tried when there is nothing to drain", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(keptReady("main"))
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settle()
		w.change(setLabel)
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Tries()).To(BeEmpty())
	})

	It("puts drained pods back into service when the policy comes in the middle", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2).GracePeriod(10))
		w.setImage("nginx:latest")
		w.rounds(3, func() {})
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionFalse))
		allow := w.refuseImage("nginx:latest")
		w.clock.Step(10 * time.Second)
		Expect(w.reconcile().RequeueAfter).To(Equal(time.Second), "they need not wait for the next try")
		w.rounds(5, func() {})
		w.expectAllInService()
		w.expectDenied("is not approved")
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedUpdatePodInPlace)).NotTo(BeEmpty(), "the writes were refused")

		w.manager.Forget()
		w.clock.Step(15 * time.Second)
		w.rounds(10, w.expectAllInService)
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())

		allow()
		w.settle()
		w.expectSettled(3)
		Expect(w.restarts()).To(Equal(same[int32](1)))
	})

	It("is not written again for each pod that is changed in service, and not for labels", func(ctx context.Context) {
		for name, change := range map[string]func(*appsv1beta1.StatefulSet){
			"labels": setLabel,
			"image":  func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:latest" },
		} {
			By(name)
			w := newWorld(ctx)
			w.create(keptReady("main").MaxUnavailable(3))
			attempts := []string{}
			w.manager.Before = func(write string, _ client.Object) error {
				if !strings.Contains(write, "patch Pod ") {
					return nil
				}
				attempts = append(attempts, write)
				return apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("denied by a webhook"))
			}
			w.change(change)
			w.rounds(10, func() {})
			Expect(attempts).To(ConsistOf("patch Pod sample-2", "patch Pod sample-1", "patch Pod sample-0"))
			w.expectDenied("denied by a webhook")
			attempts = nil
			w.clock.Step(15 * time.Second)
			w.rounds(10, func() {})
			Expect(attempts).To(ConsistOf("dry-run patch Pod sample-2", "dry-run patch Pod sample-1"))

			w.manager.Before = nil
			w.clock.Step(15 * time.Second)
			w.settle()
			w.expectSettled(3)
		}
	})

	It("does not keep pods of another shape from being updated", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2))
		w.setImage("nginx:third")
		w.settle()
		w.refuse("patch Pod sample-2", apierrors.NewForbidden(corev1.Resource("pods"), "sample-2", errors.New("denied")))
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](0)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		w.rounds(40, func() {})
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:latest", "sample-1": "nginx:latest", "sample-2": "nginx:third"}))
		Expect(w.status().Blockers).To(ConsistOf(And(HaveField("Pod", "sample-2"), HaveField("Reason", inplace.ReasonAdmissionDenied))))
	})

	It("counts as accepted when a webhook takes no part in dry runs", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "dry-run") {
				return apierrors.NewBadRequest(`admission webhook "mutate.example.io" does not support dry run`)
			}
			return nil
		}
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
	})

	// Nothing is known then: neither is a pod drained, nor one put back.
	It("is not taken for refused when the server gives no answer", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.refuse("patch Pod sample", unanswered())
		w.setImage("nginx:latest")
		w.reconcileFailing()
		w.expectAllInService()
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedUpdatePod).Message).To(ContainSubstring("come back later"))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionFalse))
		Expect(w.status().Blockers).To(ContainElement(HaveField("Message", ContainSubstring("come back later"))))
		Expect(w.recorder.Events(inplace.ReasonAdmissionDenied)).To(BeEmpty())
		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
	})

	It("is planned again when the pod changes meanwhile", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		conflicts := 0
		w.manager.Before = func(write string, _ client.Object) error {
			if write != "dry-run patch Pod sample-2" || conflicts > 0 {
				return nil
			}
			conflicts++
			pod := w.pod("sample-2")
			before := pod.DeepCopy()
			pod.Annotations = map[string]string{"another": "client"}
			return w.api.Patch(w.ctx, pod, client.MergeFrom(before))
		}
		w.setImage("nginx:latest")
		Expect(w.reconcile().RequeueAfter).To(Equal(time.Second))
		w.expectAllInService()
		w.settle()
		w.expectSettled(3)
		Expect(conflicts).To(Equal(1))
	})

	It("stays refused when the manager is killed and started again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		w.refuseImage("nginx:latest")
		w.setImage("nginx:latest")
		for range 3 {
			w.rounds(2, w.expectAllInService)
			w.startManager(shared)
		}
		w.rounds(2, w.expectAllInService)
		w.expectDenied("is not approved")
		Expect(w.manager.Writes("")).To(BeEmpty())
	})
})

// The pods never have the images of the template; test/e2e has the same with a
// MutatingAdmissionPolicy, which the oldest supported Kubernetes does not know.
var _ = Describe("A change that admission rewrites", func() {
	for name, rewrite := range map[string]func(string) string{
		"with another registry": func(image string) string { return "mirror.example.io/" + image },
		"with a digest":         func(image string) string { return image + "@sha256:0123" },
	} {
		It("completes "+name+", forth and back, and is left alone then", func(ctx context.Context) {
			w := newWorld(ctx)
			w.create(reference())
			uids := w.uids()
			w.manager.Rewrite = rewrite
			for i, image := range []string{"nginx:latest", "nginx:alpine", "nginx:latest"} {
				w.setImage(image)
				w.settle()
				w.expectSettled(3)
				Expect(w.images()).To(Equal(same(rewrite(image))))
				Expect(w.restarts()).To(Equal(same(int32(i + 1))))
				w.expectNoWrites()
			}
			w.change(setLabel)
			w.settle()
			w.expectSettled(3)
			Expect(w.manager.Writes("patch Pod/status")).To(BeEmpty(), "labels are no reason to drain, and to set the image again")
			Expect(w.uids()).To(Equal(uids))
		})

		It("is overtaken "+name+" by a rollback before the kubelet acts", func(ctx context.Context) {
			w := newWorld(ctx)
			w.create(reference().Replicas(1))
			w.manager.Rewrite = rewrite
			w.setImage("nginx:latest")
			w.settle()
			w.setImage("nginx:alpine")
			w.rounds(2, func() {})
			w.reconcile()
			Expect(w.images()).To(Equal(map[string]string{"sample-0": rewrite("nginx:alpine")}))
			w.setImage("nginx:latest")
			w.settle()
			w.expectSettled(1)
			Expect(w.images()).To(Equal(map[string]string{"sample-0": rewrite("nginx:latest")}))
			w.expectNoWrites()
		})
	}
})
