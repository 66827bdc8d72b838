// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// The kinds of Kubernetes whose rollouts go in place.
const (
	deployment  = "Deployment"
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
)

// builtin is a workload of one of these kinds, handled with kubectl as its user does.
type builtin struct {
	kind, namespace string
}

// container is the container of its pods.
const container = "main"

// resource names the workload to kubectl. StatefulSets and DaemonSets are kinds of
// Kruise, too.
func (b builtin) resource() string {
	return strings.ToLower(b.kind) + "s.apps/web"
}

// manifest returns the workload as its user keeps it in a file. It is opted in.
func (b builtin) manifest(image string) string {
	size := small.resources()
	lines := []string{
		"apiVersion: apps/v1",
		"kind: " + b.kind,
		"metadata:",
		"  name: web",
		"  labels: {" + native.UpdatePolicyLabel + ": InPlaceIfPossible}",
		"spec:",
		"  selector: {matchLabels: {app: web}}",
	}
	switch b.kind {
	case deployment:
		lines = append(lines, "  replicas: 3", "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}")
	case statefulSet:
		lines = append(lines, "  replicas: 3", "  serviceName: web", "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}")
	case daemonSet:
		lines = append(lines, "  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}")
	}
	lines = append(
		lines,
		"  template:",
		"    metadata: {labels: {app: web}}",
		"    spec:",
		"      terminationGracePeriodSeconds: 1",
		"      containers:",
		"      - name: "+container,
		"        image: "+image,
		"        imagePullPolicy: IfNotPresent",
		fmt.Sprintf("        resources: {requests: {cpu: %s, memory: %s}, limits: {cpu: %s, memory: %s}}",
			small.cpu, small.memory, size.Limits.Cpu(), size.Limits.Memory()),
	)
	return strings.Join(lines, "\n") + "\n"
}

// gated is the manifest of a workload whose pods have the readiness gate.
func (b builtin) gated(image string) string {
	return strings.Replace(b.waiting(image, 3), "    spec:\n", "    spec:\n      readinessGates: [{conditionType: InPlaceUpdateReady}]\n", 1)
}

// waiting is the manifest of a workload with a grace period, in seconds.
func (b builtin) waiting(image string, gracePeriod int) string {
	return strings.Replace(b.manifest(image), "  name: web\n",
		fmt.Sprintf("  name: web\n  annotations: {%s: %q}\n", native.GracePeriodSecondsAnnotation, strconv.Itoa(gracePeriod)), 1)
}

// kubectl runs a command on the namespace of the workload, and returns what it printed.
func (b builtin) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, append([]string{"--namespace", b.namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return output
}

// kubectlFails returns what kubectl says when it fails.
func (b builtin) kubectlFails(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := kubectl(ctx, append([]string{"--namespace", b.namespace}, args...)...)
	Expect(err).To(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return output
}

// apply applies a manifest.
func (b builtin) apply(ctx context.Context, manifest string, flags ...string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "web.yaml")
	Expect(os.WriteFile(path, []byte(manifest), 0o600)).To(Succeed())
	return b.kubectl(ctx, append([]string{"apply", "-f", path}, flags...)...)
}

// start applies a manifest and waits until the pods are there.
func (b builtin) start(ctx context.Context, manifest string, flags ...string) []observe.Pod {
	GinkgoHelper()
	b.apply(ctx, manifest, flags...)
	b.rolledOut(ctx)
	return b.pods(ctx)
}

func (b builtin) setImage(ctx context.Context, image string) {
	GinkgoHelper()
	b.kubectl(ctx, "set", "image", b.resource(), container+"="+image)
}

// rolledOut waits for the rollout in the way of kubectl.
func (b builtin) rolledOut(ctx context.Context) {
	GinkgoHelper()
	Expect(b.kubectl(ctx, "rollout", "status", b.resource(), "--timeout="+patience.String())).To(Or(
		ContainSubstring("successfully rolled out"), ContainSubstring("roll out complete")))
}

// get returns the workload.
func (b builtin) get(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(b.kind))
	Expect(api.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: "web"}, object)).To(Succeed())
	return object
}

// wish returns what the user wrote into the spec besides the template.
func (b builtin) wish(ctx context.Context) map[string]any {
	GinkgoHelper()
	spec := b.get(ctx).Object["spec"].(map[string]any)
	delete(spec, "template")
	return spec
}

// isHeld reports whether Kubernetes is kept from recreating the pods.
func (b builtin) isHeld(ctx context.Context) bool {
	GinkgoHelper()
	object := b.get(ctx)
	paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused")
	minReady, _, _ := unstructured.NestedInt64(object.Object, "spec", "minReadySeconds")
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
	return object.GetLabels()[native.HeldLabel] == native.Held &&
		(paused || minReady == int64(native.HeldMinReadySeconds) || strategy == string(appsv1.OnDeleteDaemonSetStrategyType))
}

// released waits until the hold has ended. What it was is not seen in the object any
// more.
func (b builtin) released(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, b.isHeld).Should(BeFalse())
	b.expectNoTraces(ctx)
}

// expectNoTraces checks that nothing of a hold is left in the object.
func (b builtin) expectNoTraces(ctx context.Context) {
	GinkgoHelper()
	object := b.get(ctx)
	Expect(object.GetLabels()).NotTo(HaveKey(native.HeldLabel))
	for _, key := range []string{
		native.StatusAnnotation, native.HeldPartitionAnnotation, native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation,
		native.HeldMinReadySecondsAnnotation, native.HeldProgressDeadlineSecondsAnnotation,
		native.HeldObservedGenerationAnnotation,
	} {
		Expect(object.GetAnnotations()).NotTo(HaveKey(key))
	}
}

// updated waits until an update in place has ended, as Insitu and as kubectl see it.
func (b builtin) updated(ctx context.Context) []observe.Pod {
	GinkgoHelper()
	b.released(ctx)
	b.rolledOut(ctx)
	return b.pods(ctx)
}

// pods returns the pods that are not about to go.
func (b builtin) pods(ctx context.Context) []observe.Pod {
	GinkgoHelper()
	found, err := observe.Pods(ctx, kube, b.namespace, "app=web")
	Expect(err).NotTo(HaveOccurred())
	live := map[types.UID]bool{}
	for _, pod := range b.livePods(ctx) {
		live[pod.UID] = true
	}
	return slices.DeleteFunc(found, func(pod observe.Pod) bool { return !live[pod.UID] })
}

// livePods returns the pods that are not about to go, as they are. The pod that a hold makes
// more is none of them.
func (b builtin) livePods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(b.namespace), client.MatchingLabels{"app": "web"})).To(Succeed())
	surge := b.surge(ctx)
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || surge != nil && metav1.IsControlledBy(&pod, surge)
	})
}

// pullers returns the pods that pull images.
func (b builtin) pullers(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(b.namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
	return list.Items
}

// surge returns the ReplicaSet of the pod that a hold makes more; nil if there is none.
func (b builtin) surge(ctx context.Context) *appsv1.ReplicaSet {
	GinkgoHelper()
	if b.kind != deployment {
		return nil
	}
	most := int32(0)
	var found *appsv1.ReplicaSet
	all := b.replicaSets(ctx)
	for i := range all {
		most = max(most, *all[i].Spec.Replicas)
		if all[i].Spec.MinReadySeconds == native.HeldMinReadySeconds && (found == nil || *all[i].Spec.Replicas < *found.Spec.Replicas) {
			found = &all[i]
		}
	}
	if found == nil || *found.Spec.Replicas == most {
		return nil
	}
	return found
}

// reached waits until so many pods have an image.
func (b builtin) reached(ctx context.Context, image string, count int) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) int { return countImage(b.pods(ctx), image) }).
		WithPolling(50 * time.Millisecond).Should(BeNumerically(">=", count))
}

// tried waits until a pod has an image: one of the workload, or that which a hold makes more.
func (b builtin) tried(ctx context.Context, image string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) ([]observe.Pod, error) {
		return observe.Pods(ctx, kube, b.namespace, "app=web")
	}).Should(ContainElement(HaveField("Image", image)))
}

func countImage(found []observe.Pod, image string) int {
	count := 0
	for _, pod := range found {
		if pod.Image == image {
			count++
		}
	}
	return count
}

// pause keeps further pods from starting their update, or lets them.
func (b builtin) pause(ctx context.Context, paused bool) {
	GinkgoHelper()
	b.kubectl(ctx, "annotate", "--overwrite", b.resource(), fmt.Sprintf("%s=%t", native.PausedAnnotation, paused))
}

// annotate sets an annotation of the workload; nil takes it off.
func (b builtin) annotate(ctx context.Context, key string, value *string) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{key: value}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(api.Patch(ctx, b.get(ctx), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// keepOthers lets an update change one of the pods, and keeps the others from it until
// the spec releases them: so an update stays in its middle, however late a spec looks. A
// StatefulSet that has come to its partition is released, so it has no partition, but a
// PodDisruptionBudget of those pods.
func (b builtin) keepOthers(ctx context.Context) (release func(context.Context)) {
	GinkgoHelper()
	var names []string
	for _, pod := range b.pods(ctx) {
		names = append(names, pod.Name)
	}
	others := names[:len(names)-1] // the highest ordinal goes first
	if b.kind != statefulSet {
		b.annotate(ctx, native.PartitionAnnotation, ptr.To(strconv.Itoa(len(others))))
		return func(ctx context.Context) { b.annotate(ctx, native.PartitionAnnotation, nil) }
	}
	b.annotate(ctx, native.PodDisruptionBudgetAnnotation, ptr.To("Respect"))
	remove := temporarily(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "others"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: appsv1.StatefulSetPodNameLabel, Operator: metav1.LabelSelectorOpIn, Values: others},
			}},
		},
	})
	return func(ctx context.Context) {
		remove(ctx)
		b.annotate(ctx, native.PodDisruptionBudgetAnnotation, nil)
	}
}

// half brings an update to its middle: a pod has the image, and the others have not
// and will not begin.
func (b builtin) half(ctx context.Context, image string) {
	GinkgoHelper()
	release := b.keepOthers(ctx)
	b.setImage(ctx, image)
	Expect(b.isHeld(ctx)).To(BeTrue(), "the hold is in the write that changes the template")
	b.reached(ctx, image, 1)
	b.annotate(ctx, native.PausedAnnotation, ptr.To("true"))
	// Before the operator has seen the pause, it would go on with the others.
	Eventually(ctx, b.annotation).WithArguments(native.StatusAnnotation).Should(ContainSubstring(`"state":"` + string(native.Paused) + `"`))
	release(ctx)
	Expect(countImage(b.pods(ctx), image)).To(Equal(1))
}

// expectRecreated checks that all pods run an image, and none was there before.
func expectRecreated(before, after []observe.Pod, image string) {
	GinkgoHelper()
	Expect(after).To(HaveLen(len(before)))
	Expect(images(after)).To(HaveEach(image))
	Expect(uids(after)).NotTo(ContainElement(BeElementOf(uids(before))))
}

// shortOfSets puts a spec that all kinds have into the short run for StatefulSets only.
func shortOfSets(kind string) Labels {
	if kind == statefulSet {
		return short.Spec
	}
	return Label()
}

// forEachKind makes specs for each kind.
func forEachKind(text string, specs func(kind string)) bool {
	return DescribeTableSubtree(text, specs,
		Entry("of a Deployment", deployment), Entry("of a StatefulSet", statefulSet), Entry("of a DaemonSet", daemonSet))
}
