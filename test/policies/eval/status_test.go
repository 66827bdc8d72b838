// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// observation is what a workload of generation 4 says that its controller has seen: in its
// status, and in the annotation, which is absent if it is empty.
type observation struct {
	status     int64
	annotation string
}

// TestStatus has a controller say in the status which generation it has seen, while the counts
// change. Of a held workload no client may learn that it is the present one.
func TestStatus(t *testing.T) {
	set := newSet(t).Strict()
	for name, test := range map[string]struct {
		old, write, want observation
		isFree           bool // and not held
	}{
		"the present generation":                {observation{3, ""}, observation{4, ""}, observation{3, "4"}, false},
		"the present generation again":          {observation{3, "4"}, observation{4, "4"}, observation{3, "4"}, false},
		"the present one after another":         {observation{2, "3"}, observation{4, "3"}, observation{3, "4"}, false},
		"the one before":                        {observation{2, ""}, observation{3, ""}, observation{3, "3"}, false},
		"an older one than was seen":            {observation{3, "4"}, observation{3, "4"}, observation{3, "3"}, false},
		"none at all":                           {observation{0, ""}, observation{0, ""}, observation{0, ""}, false},
		"the present generation without a hold": {observation{3, ""}, observation{4, ""}, observation{4, ""}, true},
	} {
		for kind, of := range map[string]func(observation, int32, bool) client.Object{"StatefulSet": statefulSetThat, "DaemonSet": daemonSetThat} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				asked := eval.Request{Old: of(test.old, 0, !test.isFree), New: of(test.write, 1, !test.isFree), Status: true}
				got, err := set.Admit(t.Context(), asked)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())

				NewWithT(t).Expect(whole(t, got)).To(Equal(whole(t, of(test.want, 1, !test.isFree))))
			})
		}
	}
}

// TestStatusThatStays has something write the status as it is.
func TestStatusThatStays(t *testing.T) {
	set := newSet(t).Strict()
	for _, of := range []func(observation, int32, bool) client.Object{statefulSetThat, daemonSetThat} {
		stored := of(observation{3, "4"}, 1, true)
		got, err := set.Admit(t.Context(), eval.Request{Old: stored, New: of(observation{3, "4"}, 1, true), Status: true})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(whole(t, got)).To(Equal(whole(t, stored)))
	}
}

// TestCurrentRevision has the controller of a StatefulSet write at which revision a pod is made
// that is below the partition. During a hold that is the new one, unless pods are to stay.
func TestCurrentRevision(t *testing.T) {
	set := newSet(t).Strict()
	for name, test := range map[string]struct {
		hold          func(*appsv1.StatefulSet)
		before        string // kept already
		current, kept string // what is stored
	}{
		"the revision before":                    {byPartition("0"), "", "web-2", "web-1"},
		"one after another template in the hold": {byPartition("0"), "web-0", "web-2", "web-0"},
		"the revision before a partition":        {byPartition("1"), "", "web-1", ""},
		"the revision before a hold by OnDelete": {func(*appsv1.StatefulSet) {}, "", "web-1", ""},
		"the revision before without a hold":     {free, "", "web-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			write := statefulSetThat(observation{4, ""}, 1, true).(*appsv1.StatefulSet)
			write.Status.CurrentRevision = "web-1"
			test.hold(write)
			if test.before != "" {
				metav1.SetMetaDataAnnotation(&write.ObjectMeta, native.HeldCurrentRevisionAnnotation, test.before)
			}
			stored := write.DeepCopy()
			stored.Status = appsv1.StatefulSetStatus{ObservedGeneration: 3, CurrentRevision: "web-1", UpdateRevision: "web-1"}
			admitted, err := set.Admit(t.Context(), eval.Request{Old: stored, New: write, Status: true})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())

			got := admitted.(*appsv1.StatefulSet)
			g.Expect(got.Status.CurrentRevision).To(Equal(test.current))
			g.Expect(got.Status.UpdateRevision).To(Equal("web-2"))
			g.Expect(got.Annotations[native.HeldCurrentRevisionAnnotation]).To(Equal(test.kept))
		})
	}
}

func byPartition(wanted string) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		free(s)
		s.Labels[native.HeldLabel] = native.Held
		s.Annotations = map[string]string{native.HeldPartitionAnnotation: wanted}
	}
}

// free leaves the partition of a hold, and takes off its label.
func free(s *appsv1.StatefulSet) {
	delete(s.Labels, native.HeldLabel)
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(native.HeldPartition)},
	}
}

func statefulSetThat(o observation, updated int32, isHeld bool) client.Object {
	return &appsv1.StatefulSet{
		ObjectMeta: metadataThat(o, isHeld),
		Spec:       appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: o.status, Replicas: 3, UpdatedReplicas: updated, UpdateRevision: "web-2"},
	}
}

func daemonSetThat(o observation, updated int32, isHeld bool) client.Object {
	return &appsv1.DaemonSet{
		ObjectMeta: metadataThat(o, isHeld),
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: o.status, DesiredNumberScheduled: 3, UpdatedNumberScheduled: updated},
	}
}

func metadataThat(o observation, isHeld bool) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "case", Generation: 4, Labels: map[string]string{"app": "web"}}
	if isHeld {
		meta.Labels[native.HeldLabel] = native.Held
	}
	if o.annotation != "" {
		meta.Annotations = map[string]string{native.HeldObservedGenerationAnnotation: o.annotation}
	}
	return meta
}
