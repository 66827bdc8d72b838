// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// fullReplicaSet returns a ReplicaSet with pods in which every field that the API
// has is set.
func fullReplicaSet() *appsv1.ReplicaSet {
	replicaSet := &appsv1.ReplicaSet{}
	fill(replicaSet)
	replicaSet.Spec.Replicas, replicaSet.Status.Replicas = ptr.To[int32](3), 2
	replicaSet.SelfLink = "" //nolint:staticcheck // filled in like every field, and not read
	replicaSet.Annotations = map[string]string{
		"deployment.kubernetes.io/revision":         "7",
		"deployment.kubernetes.io/revision-history": "3,5",
		"kubernetes.io/change-cause":                "a new page",
		"team":                                      "shop",
		corev1.LastAppliedConfigAnnotation:          "{}",
	}

	return replicaSet
}

func TestTrimReplicaSetKeepsWhatIsReadAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	whole := fullReplicaSet()

	trimmed, err := trimReplicaSet(whole.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	replicaSet := trimmed.(*appsv1.ReplicaSet)

	g.Expect(fields(t, replicaSet.ObjectMeta)).To(Equal([]string{
		"annotations", "creationTimestamp", "deletionTimestamp", "generation", "labels", "name", "namespace",
		"ownerReferences", "resourceVersion", "uid",
	}))
	metadata := whole.ObjectMeta.DeepCopy()
	metadata.ManagedFields, metadata.Finalizers = nil, nil
	metadata.GenerateName, metadata.DeletionGracePeriodSeconds = "", nil
	delete(metadata.Annotations, "team")
	delete(metadata.Annotations, corev1.LastAppliedConfigAnnotation)
	g.Expect(replicaSet.ObjectMeta).To(Equal(*metadata))

	spec := whole.Spec.DeepCopy()
	g.Expect(replicaSet.Spec).To(Equal(*spec))
	status := whole.Status.DeepCopy()
	status.Conditions = nil
	g.Expect(replicaSet.Status).To(Equal(*status))
}

func TestTrimReplicaSetKeepsThatPodsCannotBeMade(t *testing.T) {
	g := NewWithT(t)
	failure := appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: metav1.Now(),
	}
	whole := fullReplicaSet()
	whole.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Other"}, failure}

	trimmed, err := trimReplicaSet(whole)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trimmed.(*appsv1.ReplicaSet).Status.Conditions).To(ConsistOf(failure))
}

func TestTrimReplicaSetKeepsTheTemplateOfOneWithPods(t *testing.T) {
	for name, test := range map[string]struct {
		desired *int32
		current int32
		keeps   bool
	}{
		"as many as by default": {keeps: true},
		"all of them":           {desired: ptr.To[int32](3), current: 3, keeps: true},
		"not yet":               {desired: ptr.To[int32](3), keeps: true},
		"not any more":          {desired: ptr.To[int32](0), current: 1, keeps: true},
		"none":                  {desired: ptr.To[int32](0)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := fullReplicaSet()
			whole.Spec.Replicas, whole.Status.Replicas = test.desired, test.current
			template := *whole.Spec.Template.DeepCopy()

			trimmed, err := trimReplicaSet(whole)

			g.Expect(err).NotTo(HaveOccurred())
			replicaSet := trimmed.(*appsv1.ReplicaSet)
			g.Expect(HasTemplate(replicaSet)).To(Equal(test.keeps))
			if !test.keeps {
				template = corev1.PodTemplateSpec{}
			}
			g.Expect(replicaSet.Spec.Template).To(Equal(template))
			g.Expect(replicaSet.Spec.Replicas).To(Equal(test.desired))
		})
	}
}

// BenchmarkTrimReplicaSet reports the memory that one ReplicaSet takes in the
// cache, whole and trimmed, with pods and without.
func BenchmarkTrimReplicaSet(b *testing.B) {
	empty := ordinaryReplicaSet(b)
	empty.Spec.Replicas = ptr.To[int32](0)
	empty.Status = appsv1.ReplicaSetStatus{ObservedGeneration: empty.Status.ObservedGeneration}
	for name, test := range map[string]struct {
		replicaSet *appsv1.ReplicaSet
		trim       cache.TransformFunc
	}{
		"whole":         {ordinaryReplicaSet(b), func(in any) (any, error) { return in, nil }},
		"trimmed":       {ordinaryReplicaSet(b), trimReplicaSet},
		"empty,trimmed": {empty, trimReplicaSet},
	} {
		b.Run(name, func(b *testing.B) {
			measureTrim(b, test.replicaSet, test.trim, "bytes/replicaset")
		})
	}
}

// ordinaryReplicaSet is the ReplicaSet of a Deployment of a small web server, whose
// pods are those of ordinaryPod.
func ordinaryReplicaSet(tb testing.TB) *appsv1.ReplicaSet {
	tb.Helper()
	pod := ordinaryPod(tb)
	labels := map[string]string{"app": "sample", appsv1.DefaultDeploymentUniqueLabelKey: "6c9f7d5b8"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}
	template.Spec.NodeName = ""

	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "sample-6c9f7d5b8", Namespace: pod.Namespace, UID: "52f8c1de-9a53-4f0c-8a5f-3f0d7b2c9a61", ResourceVersion: "48209",
			Generation: 4, CreationTimestamp: pod.CreationTimestamp, Labels: labels,
			Annotations: map[string]string{
				"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4",
				"deployment.kubernetes.io/revision": "7",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "sample", UID: "0d6c0bb7-3a1c-4dc0-9c5b-7bb0a3f7a8e2",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
			// Those of its template are those of the pod.
			ManagedFields: pod.ManagedFields[:1],
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 4,
		},
	}
}
