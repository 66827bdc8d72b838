// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"
)

// fill sets every field that the API has of an object.
func fill(object any) {
	filler := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(20).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1") },
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.Unix(1, 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString("{}") },
	)
	filler.Fill(object)
}

// fullPod returns a pod in which every field that the API has is set.
func fullPod() *corev1.Pod {
	pod := &corev1.Pod{}
	fill(pod)
	pod.Annotations = map[string]string{"config": "blue", corev1.LastAppliedConfigAnnotation: "{}"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{resizedBy("kubelet", "status"), resizedBy("insitu", "resize")}

	return pod
}

// fields returns the JSON names of the fields that are set, sorted.
func fields(t *testing.T, value any) []string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var set map[string]any
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}

	return slices.Sorted(maps.Keys(set))
}

func TestTrimPodKeepsWhatIsReadAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	whole := fullPod()
	g.Expect(fields(t, whole.Spec)).To(ContainElements("affinity", "tolerations", "securityContext", "schedulerName"), "every field is set")

	trimmed, err := trimPod(whole.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	pod := trimmed.(*corev1.Pod)

	g.Expect(fields(t, pod.Spec)).To(Equal([]string{
		"containers", "initContainers", "nodeName", "priorityClassName", "readinessGates", "resources", "terminationGracePeriodSeconds", "tolerations", "volumes",
	}))
	kept := []string{"env", "image", "imagePullPolicy", "name", "resizePolicy", "resources", "restartPolicy"}
	for _, container := range []corev1.Container{pod.Spec.Containers[0], pod.Spec.InitContainers[0]} {
		g.Expect(fields(t, container)).To(Equal(kept))
		g.Expect(fields(t, container.Env[0])).To(Equal([]string{"name", "valueFrom"}))
		g.Expect(fields(t, container.Env[0].ValueFrom)).To(Equal([]string{"fieldRef"}))
	}
	g.Expect(fields(t, pod.Spec.Volumes[0])).To(Equal([]string{"name", "persistentVolumeClaim"}))

	metadata := whole.ObjectMeta.DeepCopy()
	metadata.ManagedFields = metadata.ManagedFields[1:]
	metadata.Annotations = map[string]string{"config": "blue"}
	g.Expect(pod.ObjectMeta).To(Equal(*metadata))
	g.Expect(pod.Status).To(Equal(whole.Status))
	g.Expect(pod.Spec.Containers[0].Resources).To(Equal(whole.Spec.Containers[0].Resources))
	g.Expect(pod.Spec.ReadinessGates).To(Equal(whole.Spec.ReadinessGates))
}

// Nearly all pods have the tolerations that the API server gives them, and share one list.
func TestPodsShareTheUsualTolerations(t *testing.T) {
	g := NewWithT(t)
	toleration := func(taint string) corev1.Toleration {
		return corev1.Toleration{Key: taint, Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)}
	}
	usual := func(more ...corev1.Toleration) []corev1.Toleration {
		list := []corev1.Toleration{toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")}

		return append(more, list...)
	}
	trimmed := func(tolerations []corev1.Toleration) []corev1.Toleration {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}}
		_, err := trimPod(pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Spec.Tolerations).To(Equal(tolerations))

		return pod.Spec.Tolerations
	}

	g.Expect(&trimmed(usual())[0]).To(BeIdenticalTo(&trimmed(usual())[0]))
	g.Expect(trimmed(usual(corev1.Toleration{Key: "gpu"}))).To(HaveLen(3))
	g.Expect(trimmed(nil)).To(BeNil())
}

func TestTrimPodDropsEnvAndVolumesThatNoDecisionReads(t *testing.T) {
	g := NewWithT(t)
	fromField := corev1.EnvVar{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['config']"}}}
	claim := corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "x"},
			{Name: "KRUISE_CONTAINER_PRIORITY", Value: "3"},
			fromField,
			{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}}},
		}}},
		Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			claim,
		},
	}}

	_, err := trimPod(pod)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Spec.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "KRUISE_CONTAINER_PRIORITY", Value: "3"}, fromField}))
	g.Expect(pod.Spec.Volumes).To(Equal([]corev1.Volume{claim}))
}

// resizedBy returns an entry of managedFields for the requests and limits of a
// container.
func resizedBy(manager, subresource string) metav1.ManagedFieldsEntry {
	set := &metav1.FieldsV1{}
	set.SetRawString(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:limits":{"f:memory":{}},"f:requests":{"f:cpu":{},"f:memory":{}}}}}}}`)

	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: set, Subresource: subresource,
	}
}

func TestTrimPodKeepsOfManagedFieldsWhatWeResized(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		resizedBy("insitu", ""), resizedBy("insitu", "status"), resizedBy("vpa-updater", "resize"),
		resizedBy("insitu", "resize"), resizedBy("kubelet", "status"),
	}}}

	_, err := trimPod(pod)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.ManagedFields).To(Equal([]metav1.ManagedFieldsEntry{resizedBy("insitu", "resize")}))
	g.Expect(pod.ManagedFields).To(HaveCap(1), "the others must not be held in memory")
}

func TestTrimTwiceIsTrimOnce(t *testing.T) {
	slice := sliceOf("web", endpoint("web-0", "1", discoveryv1.EndpointConditions{Serving: ptr.To(true)}))
	empty := fullReplicaSet()
	empty.Spec.Replicas, empty.Status.Replicas = ptr.To[int32](0), 0
	for name, test := range map[string]struct {
		trim cache.TransformFunc
		obj  runtime.Object
	}{
		"pod":              {trim: trimPod, obj: fullPod()},
		"slice":            {trim: trimEndpointSlice, obj: slice},
		"ReplicaSet":       {trim: trimReplicaSet, obj: fullReplicaSet()},
		"empty ReplicaSet": {trim: trimReplicaSet, obj: empty},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			once, err := test.trim(test.obj)
			g.Expect(err).NotTo(HaveOccurred())
			want := once.(runtime.Object).DeepCopyObject()
			twice, err := test.trim(once)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(twice).To(Equal(want))
		})
	}
}

func TestTrimLeavesOtherObjectsAlone(t *testing.T) {
	g := NewWithT(t)
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/web-0", Obj: fullPod()}

	for _, trim := range []cache.TransformFunc{trimPod, trimEndpointSlice, trimReplicaSet} {
		out, err := trim(tombstone)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal(tombstone))
	}
}

func TestTrimEndpointSlice(t *testing.T) {
	g := NewWithT(t)
	serving := endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)})
	drained := endpoint("web-1", "2", discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false)})
	noPod := discoveryv1.Endpoint{Addresses: []string{"10.0.0.9"}}
	slice := sliceOf("web", serving, drained, noPod)
	slice.Labels["team"] = "shop"
	slice.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}}
	slice.Ports = []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}}

	out, err := trimEndpointSlice(slice)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-x", Namespace: "shop", UID: "slice", ResourceVersion: "7",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: managedByController},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Conditions: serving.Conditions,
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "web-0", UID: "1"},
		}},
	}))
}

// BenchmarkTrimPod reports the memory that one pod takes in the cache, whole
// and trimmed, and trimmed after it was resized.
func BenchmarkTrimPod(b *testing.B) {
	resized := ordinaryPod(b)
	resized.ManagedFields = append(resized.ManagedFields, resizedBy("insitu", "resize"))
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		trim cache.TransformFunc
	}{
		"whole":           {ordinaryPod(b), func(in any) (any, error) { return in, nil }},
		"trimmed":         {ordinaryPod(b), trimPod},
		"resized,trimmed": {resized, trimPod},
	} {
		b.Run(name, func(b *testing.B) {
			measureTrim(b, test.pod, test.trim, "bytes/pod")
		})
	}
}
