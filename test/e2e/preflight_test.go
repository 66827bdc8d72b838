// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// podUpdates matches updates of pods in a namespace.
func podUpdates(namespace string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			},
		}},
	}
}

// allowImages makes a ValidatingAdmissionPolicy that lets pods of a namespace
// change to some images only, and waits until the API server acts on it for a
// pod. It returns the binding: deleting it ends the policy.
func allowImages(ctx context.Context, pod *corev1.Pod, images string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	GinkgoHelper()
	name := "approved-images." + pod.Namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: podUpdates(pod.Namespace),
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.spec.containers.all(c, c.image in %s)", images),
				Message:    "ask the platform team to approve the image",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	Expect(api.Create(ctx, policy)).To(Succeed())
	Expect(api.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, policy))).To(Succeed())
	})
	Eventually(ctx, func(ctx context.Context) error {
		_, err := tryImage(ctx, pod, "never-approved")
		return err
	}).Should(MatchError(ContainSubstring("ask the platform team")))
	return binding
}

// tryImage returns the image that a pod would get, were it changed to one.
func tryImage(ctx context.Context, pod *corev1.Pod, image string) (string, error) {
	body := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"image":%q}]}}`, pod.Spec.Containers[0].Name, image)
	answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := api.Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, []byte(body)), client.DryRunAll); err != nil {
		return "", err
	}
	return answer.Spec.Containers[0].Image, nil
}

var _ = Describe("A policy that approves images", func() {
	It("is named before a pod is taken out of service, and the rollout goes on when it is gone", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).MaxUnavailable(2))
		before := pods(ctx, set)
		binding := allowImages(ctx, getPod(ctx, set, 0), `["nginx:alpine"]`)
		writes := len(operatorWrites(namespace))

		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)).To(And(
				HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonAdmissionDenied),
				HaveField("Message", ContainSubstring("ValidatingAdmissionPolicy '"+binding.Name+"'")),
				HaveField("Message", ContainSubstring("ask the platform team to approve the image"))))
			g.Expect(set.Status.Blockers).To(And(HaveLen(3), HaveEach(HaveField("Reason", inplace.ReasonAdmissionDenied))))
		})
		table, err := kubectl(ctx, "get", "statefulsets.apps.kruise.io", "-o", "wide", "-n", namespace)
		Expect(err).NotTo(HaveOccurred(), table)
		Expect(table).To(ContainSubstring(inplace.ReasonAdmissionDenied))
		GinkgoWriter.Println(table)
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonAdmissionDenied, "ask the platform team")
		expectEvent(ctx, namespace, "Pod", inplace.ReasonAdmissionDenied, "ask the platform team")
		// Longer than the time after which the server is asked again.
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			for _, p := range pods(ctx, set) {
				g.Expect(p.Ready).To(BeTrue())
			}
		}).WithTimeout(17 * time.Second).Should(Succeed())
		expectInPlace(before, pods(ctx, set), 0)
		Expect(operatorWrites(namespace)[writes:]).NotTo(ContainElement(ContainSubstring("pods/")))

		Expect(api.Delete(ctx, binding)).To(Succeed())
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})
})

// Kubernetes has MutatingAdmissionPolicies from 1.36 on; controllers/statefulset
// has the same with images that are rewritten in the client, for the oldest one.
var _ = Describe("A policy that rewrites images", func() {
	It("does not keep a rollout, nor a rollback, from being completed", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Replicas(2))
		before := pods(ctx, set)
		rewriteImages(ctx, getPod(ctx, set, 0))

		for i, image := range []string{nginxLatest, nginxAlpine} {
			setImage(ctx, set, image)
			waitSettled(ctx, set)
			after := pods(ctx, set)
			expectInPlace(before, after, int32(i+1))
			Expect(images(after)).To(HaveEach("docker.io/library/" + image))
			writes := writesAtRest(ctx, namespace)
			nudge(ctx, set, image[len("nginx:"):])
			Expect(operatorWrites(namespace)[writes:]).To(BeEmpty(), "a settled set is left alone")
		}
	})
})

// rewriteImages makes a MutatingAdmissionPolicy that puts the registry in front of
// the images of pods, and waits until the API server acts on it for a pod.
func rewriteImages(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	name := "registry." + pod.Namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   podUpdates(pod.Namespace),
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "changes-image", Expression: "object.spec.containers[0].image != oldObject.spec.containers[0].image",
			}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "replace", path: "/spec/containers/0/image",` +
					` value: "docker.io/library/" + object.spec.containers[0].image}]`},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	Expect(api.Create(ctx, policy)).To(Succeed())
	Expect(api.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.Delete(ctx, binding)).To(Succeed())
		Expect(api.Delete(ctx, policy)).To(Succeed())
	})
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return tryImage(ctx, pod, nginxLatest)
	}).Should(Equal("docker.io/library/" + nginxLatest))
}
