// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
)

// Between these numbers of pods the autoscaler may choose.
const (
	fewest = 2
	most   = 4
)

// A client asks 50 times a second, which makes 300m of CPU for all pods together.
// The autoscaler wants them at half of what they request, and so six of them.
const (
	costly      = "/burn?for=6ms"
	requested   = "100m"
	utilization = 50
)

// drain is how long a pod is drained: while it is, it is measured, and the
// autoscaler decides about a workload of which a pod is not ready.
const drain = 10

// workload is an object of a kind that can be scaled and updated in place.
type workload struct {
	client.ObjectKey
	kind schema.GroupVersionKind
}

// progress is what all kinds have in common.
type progress struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration       int64 `json:"observedGeneration"`
		Replicas                 int32 `json:"replicas"`
		AvailableReplicas        int32 `json:"availableReplicas"`
		UpdatedReplicas          int32 `json:"updatedReplicas"`
		UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`
	} `json:"status"`
}

func (w workload) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(w.kind)
	object.SetNamespace(w.Namespace)
	object.SetName(w.Name)
	return object
}

// update begins an update that leaves as many pods at the old revision as the
// partition says.
func (w workload) update(ctx context.Context, image string, partition int) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": %q},
		{"op": "add", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": %d}]`, image, partition)
	Expect(api.Patch(ctx, w.object(), client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
}

// awaitUpdated waits until this many pods are wanted and available, and so many
// of them are updated.
func (w workload) awaitUpdated(ctx context.Context, updated, wanted int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		object, now := w.object(), progress{}
		g.Expect(api.Get(ctx, w.ObjectKey, object)).To(Succeed())
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &now)).To(Succeed())
		g.Expect(now.Spec.Replicas).To(Equal(wanted))
		g.Expect(now.Status.ObservedGeneration).To(Equal(now.Metadata.Generation))
		g.Expect(now.Status.Replicas).To(Equal(wanted))
		g.Expect(now.Status.AvailableReplicas).To(Equal(wanted))
		g.Expect(now.Status.UpdatedReplicas).To(Equal(updated))
		g.Expect(now.Status.UpdatedAvailableReplicas).To(Equal(updated))
	}).Should(Succeed())
}

func (w workload) pods(ctx context.Context) []observe.Pod {
	GinkgoHelper()
	found, err := observe.Pods(ctx, kube, w.Namespace, "app="+w.Name)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// autoscale makes an autoscaler that acts as soon as it knows, and scales up only: where
// others use the CPU, the load is less for a while.
func (w workload) autoscale(ctx context.Context) {
	GinkgoHelper()
	apiVersion, kind := w.kind.ToAPIVersionAndKind()
	Expect(api.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: w.Name},
			MinReplicas:    ptr.To[int32](fewest),
			MaxReplicas:    most,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](utilization)},
				},
			}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{
					StabilizationWindowSeconds: ptr.To[int32](5), SelectPolicy: ptr.To(autoscalingv2.DisabledPolicySelect),
				},
			},
		},
	})).To(Succeed())
}

// letScaleDown lets the autoscaler scale down, too.
func (w workload) letScaleDown(ctx context.Context) {
	GinkgoHelper()
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	patch := `{"spec":{"behavior":{"scaleDown":{"selectPolicy":"Max"}}}}`
	Expect(api.Patch(ctx, autoscaler, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// startLoad starts a client that asks the Service again and again for what costs CPU.
func startLoad(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "client"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers:                    []corev1.Container{{Name: "main", Image: sleeperV1, Args: []string{"-load=http://front." + namespace + ".svc" + costly}}},
		},
	}
	Expect(api.Create(ctx, pod)).To(Succeed())
	return pod
}

// measurable lets an autoscaler know what half of a pod's CPU is.
func measurable(template *corev1.PodTemplateSpec) {
	template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(requested)}
}

func uids(pods []observe.Pod) []types.UID {
	var all []types.UID
	for _, pod := range pods {
		all = append(all, pod.UID)
	}
	return all
}

// expectNotRecreated checks that the pods are among those from before, and were
// all updated in place.
func expectNotRecreated(before, after []observe.Pod, image string) {
	GinkgoHelper()
	Expect(uids(before)).To(ContainElements(uids(after)))
	for _, pod := range after {
		Expect(pod.Image).To(Equal(image), pod.Name)
	}
}

var _ = Describe("A horizontal pod autoscaler", func() {
	DescribeTable("scales with the load while an update in place is under way", func(ctx context.Context, build func(namespace string) client.Object) {
		object := build(newNamespace(ctx))
		kind, err := api.GroupVersionKindFor(object)
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Create(ctx, object)).To(Succeed())
		serve(ctx, object)
		w := workload{ObjectKey: client.ObjectKeyFromObject(object), kind: kind}
		w.awaitUpdated(ctx, fewest, fewest)
		w.autoscale(ctx)
		first := w.pods(ctx)

		By("scaling up when half of an update is done")
		w.update(ctx, sleeperV2, 1)
		w.awaitUpdated(ctx, 1, fewest)
		load := startLoad(ctx, w.Namespace)
		w.awaitUpdated(ctx, most-1, most)
		grown := w.pods(ctx)
		Expect(uids(grown)).To(ContainElements(uids(first)))

		By("doing the other half under load")
		w.update(ctx, sleeperV2, 0)
		w.awaitUpdated(ctx, most, most)
		expectNotRecreated(grown, w.pods(ctx), sleeperV2)

		By("scaling down when half of the next update is done")
		w.update(ctx, sleeperV1, most/2)
		w.awaitUpdated(ctx, most/2, most)
		Expect(api.Delete(ctx, load)).To(Succeed())
		w.letScaleDown(ctx)
		Eventually(ctx, w.pods).Should(HaveLen(fewest))
		w.update(ctx, sleeperV1, 0)
		w.awaitUpdated(ctx, fewest, fewest)
		expectNotRecreated(grown, w.pods(ctx), sleeperV1)
	},
		Entry("a StatefulSet", func(namespace string) client.Object {
			return builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(fewest).GracePeriod(drain).
				With(func(s *appsv1beta1.StatefulSet) { measurable(&s.Spec.Template) }).Build()
		}),
		Entry("a CloneSet", func(namespace string) client.Object {
			return builders.CloneSet(namespace, "sample", sleeperV1).Replicas(fewest).GracePeriod(drain).
				With(func(s *appsv1beta1.CloneSet) { measurable(&s.Spec.Template) }).Build()
		}),
	)
})
