// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// mesh puts a proxy into the new pods of a namespace, as the injector of a mesh does.
type mesh struct {
	policy *admissionregistrationv1.MutatingAdmissionPolicy
}

func newMesh(ctx context.Context, namespace, image string) mesh {
	GinkgoHelper()
	name := "mesh." + namespace
	creations := podUpdates(namespace)
	creations.ResourceRules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	m := mesh{&admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   creations,
			FailurePolicy:      ptr.To(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations:          proxy(image),
		},
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	Expect(api.Create(ctx, m.policy)).To(Succeed())
	Expect(api.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.Delete(ctx, binding)).To(Succeed())
		Expect(api.Delete(ctx, m.policy)).To(Succeed())
	})
	waitInjected(ctx, namespace, image)
	return m
}

func proxy(image string) []admissionregistrationv1.Mutation {
	return []admissionregistrationv1.Mutation{{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
			name: "proxy", image: %q, command: ["sh", "-c", "trap 'exit 0' QUIT TERM; while :; do sleep 1 & wait $!; done"]}}]`, image)},
	}}
}

// upgrade makes the proxy of new pods another one.
func (m mesh) upgrade(ctx context.Context, namespace, image string) {
	GinkgoHelper()
	before := m.policy.DeepCopy()
	m.policy.Spec.Mutations = proxy(image)
	Expect(api.Patch(ctx, m.policy, client.MergeFrom(before))).To(Succeed())
	waitInjected(ctx, namespace, image)
}

// waitInjected waits until the API server gives new pods a proxy.
func waitInjected(ctx context.Context, namespace, image string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]string, error) {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: nginxAlpine}}},
		}
		err := api.Create(ctx, probe, client.DryRunAll)
		return imagesOf(probe), err
	}).Should(Equal([]string{nginxAlpine, image}))
}

func imagesOf(pod *corev1.Pod) []string {
	var found []string
	for _, c := range pod.Spec.Containers {
		found = append(found, c.Image)
	}
	return found
}

// proxies returns the images of the proxies of the pods of a workload that stay.
func (b builtin) proxies(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for _, pod := range b.livePods(ctx) {
		found = append(found, imagesOf(&pod)[1:]...)
	}
	return found
}

var _ = DescribeTable("kubectl rollout restart, after a mesh was upgraded", func(ctx context.Context, kind string) {
	web := builtin{kind: kind, namespace: newNamespace(ctx)}
	mesh := newMesh(ctx, web.namespace, nginxAlpine)
	before := web.start(ctx, web.manifest(nginxAlpine))
	Expect(web.proxies(ctx)).To(HaveEach(nginxAlpine))

	web.kubectl(ctx, "rollout", "restart", web.resource())
	after := web.updated(ctx)
	Expect(after).To(HaveLen(len(before)))
	for i := range after {
		Expect(after[i].UID).To(Equal(before[i].UID), "without an upgrade it goes in place")
	}

	mesh.upgrade(ctx, web.namespace, nginxLatest)
	time.Sleep(time.Second) // restartedAt says seconds
	web.kubectl(ctx, "rollout", "restart", web.resource())
	web.released(ctx)
	web.rolledOut(ctx)

	Eventually(ctx, web.proxies).Should(And(HaveLen(len(before)), HaveEach(nginxLatest)))
	expectEvent(ctx, web.namespace, kind, "ReleasedForRecreation", "image of proxy: "+nginxAlpine+" to "+nginxLatest)
},
	Entry("gives the pods of a Deployment the new proxy", deployment),
	Entry("gives the pods of a StatefulSet the new proxy", statefulSet),
	Entry("gives the pods of a DaemonSet the new proxy", daemonSet))

var _ = Describe("A restart of a StatefulSet of apps.kruise.io, after a mesh was upgraded", func() {
	restart := func(ctx context.Context, set *appsv1beta1.StatefulSet) {
		GinkgoHelper()
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Annotations = map[string]string{inplace.RestartedAtAnnotation: "2026-01-02T12:00:00Z"}
		})
		waitSettled(ctx, set)
	}

	It("gives the pods the new proxy, one after the other", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		mesh := newMesh(ctx, namespace, nginxAlpine)
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Replicas(2))
		mesh.upgrade(ctx, namespace, nginxLatest)
		restart(ctx, set)
		for ordinal := range 2 {
			Expect(imagesOf(getPod(ctx, set, ordinal))).To(Equal([]string{nginxAlpine, nginxLatest}))
		}
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "image of proxy: "+nginxAlpine+" to "+nginxLatest)
	})

	It("says what the pods lack, where they are not to be recreated", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		mesh := newMesh(ctx, namespace, nginxAlpine)
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Replicas(2).Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
		before := pods(ctx, set)
		mesh.upgrade(ctx, namespace, nginxLatest)
		restart(ctx, set)
		after := pods(ctx, set)
		for i := range after {
			Expect(after[i].UID).To(Equal(before[i].UID))
			Expect(imagesOf(getPod(ctx, set, i))).To(HaveLen(2))
			Expect(strings.Join(imagesOf(getPod(ctx, set, i)), " ")).To(HaveSuffix(" " + nginxAlpine))
		}
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonInjectionChanged, "image of proxy: "+nginxAlpine+" to "+nginxLatest)
	})
})
