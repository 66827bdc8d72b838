// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// configAnnotation is read by the environment of these specs' containers.
const configAnnotation = "app-config"

// reading is a set of two pods whose container reads an annotation, and whose
// second one reads nothing.
func reading(namespace string) *builders.StatefulSetBuilder {
	return builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.Template.Annotations = map[string]string{configAnnotation: "one"}
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + configAnnotation + "']"},
		}}}
		s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers,
			corev1.Container{Name: "side", Image: sleeperV1, Args: []string{"-listen=:8081"}})
	})
}

func config(value string) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Annotations[configAnnotation] = value }
}

// process is what a program says of itself.
type process struct {
	Version string
	Env     map[string]string
}

// ask asks the program in a pod's container "main".
func ask(ctx context.Context, pod *corev1.Pod) process {
	GinkgoHelper()
	body, err := kube.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, "8080", "/", nil).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	answer := process{}
	Expect(json.Unmarshal(body, &answer)).To(Succeed())
	return answer
}

// expectRestarts checks how often each container of a pod was restarted.
func expectRestarts(pod *corev1.Pod, main, side int32) {
	GinkgoHelper()
	counts := map[string]int32{}
	for _, status := range pod.Status.ContainerStatuses {
		counts[status.Name] = status.RestartCount
	}
	Expect(counts).To(Equal(map[string]int32{"main": main, "side": side}), pod.Name)
}

var _ = Describe("Metadata that an environment reads", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("restarts the container in place, once, and it has the new value", short.Spec, func(ctx context.Context) {
		set := create(ctx, reading(namespace))
		before := []*corev1.Pod{getPod(ctx, set, 0), getPod(ctx, set, 1)}
		Expect(ask(ctx, before[0]).Env).To(HaveKeyWithValue("CONFIG", "one"))

		for restarts, value := range []string{"two", "three", "one"} {
			change(ctx, set, config(value))
			waitSettled(ctx, set)
			for i, was := range before {
				pod := getPod(ctx, set, i)
				Expect(pod.UID).To(Equal(was.UID))
				Expect(pod.Status.PodIP).To(Equal(was.Status.PodIP))
				expectRestarts(pod, int32(restarts)+1, 0)
				Expect(ask(ctx, pod).Env).To(HaveKeyWithValue("CONFIG", value))
				Expect(pod.Status.ContainerStatuses[0].ImageID).To(Equal(was.Status.ContainerStatuses[0].ImageID))
			}
		}
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "since it reads metadata.annotations['app-config']")
	})

	It("costs one restart together with a new image", func(ctx context.Context) {
		set := create(ctx, reading(namespace))
		before := getPod(ctx, set, 0)
		change(ctx, set, edits(config("two"), image(sleeperV2)))
		waitSettled(ctx, set)
		pod := getPod(ctx, set, 0)
		Expect(pod.UID).To(Equal(before.UID))
		expectRestarts(pod, 1, 0)
		Expect(ask(ctx, pod)).To(And(HaveField("Version", "v2"), HaveField("Env", HaveKeyWithValue("CONFIG", "two"))))
	})

	It("ends with the last value when changes overtake each other", func(ctx context.Context) {
		set := create(ctx, reading(namespace).GracePeriod(0))
		before := getPod(ctx, set, 1)
		for _, value := range []string{"two", "three", "four", "one"} {
			change(ctx, set, config(value))
			Eventually(ctx, func() string { return getPod(ctx, set, 1).Annotations[configAnnotation] }).Should(Equal(value))
		}
		waitSettled(ctx, set)
		pod := getPod(ctx, set, 1)
		Expect(pod.UID).To(Equal(before.UID))
		Expect(ask(ctx, pod).Env).To(HaveKeyWithValue("CONFIG", "one"))
	})

	It("recreates for a value of the environment itself, and names the field", func(ctx context.Context) {
		set := create(ctx, reading(namespace))
		before := getPod(ctx, set, 1)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			container := &s.Spec.Template.Spec.Containers[0]
			container.Env = append(container.Env, corev1.EnvVar{Name: "LEVEL", Value: "debug"})
		})
		waitSettled(ctx, set)
		Expect(getPod(ctx, set, 1).UID).NotTo(Equal(before.UID))
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "spec.containers[main].env[LEVEL]")
	})

	It("leaves the labels and annotations of others alone", func(ctx context.Context) {
		set := create(ctx, reading(namespace))
		pod := getPod(ctx, set, 0)
		before := pod.DeepCopy()
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "example.io/of-others", "yes")
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "example.io/of-others", "yes")
		Expect(api.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Labels["tier"] = "one"
			s.Spec.Template.Annotations["note"] = "one"
		})
		waitSettled(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			delete(s.Spec.Template.Labels, "tier")
			s.Spec.Template.Annotations["note"] = "two"
		})
		waitSettled(ctx, set)
		after := getPod(ctx, set, 0)
		Expect(after.UID).To(Equal(pod.UID))
		Expect(after.Labels).To(And(Not(HaveKey("tier")), HaveKeyWithValue("example.io/of-others", "yes")))
		Expect(after.Annotations).To(And(HaveKeyWithValue("note", "two"), HaveKeyWithValue("example.io/of-others", "yes")))
		expectRestarts(after, 0, 0)
	})
})
