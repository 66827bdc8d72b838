// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestHoldStatus has a controller say in the status which generation it has seen. Of a held
// workload no client may learn that it is the present one.
func TestHoldStatus(t *testing.T) {
	set := newSet(t).Strict()
	for name, test := range map[string]struct {
		old, write, want observation
		isFree           bool // and not held
	}{
		"the present generation":                {observation{3, ""}, observation{4, ""}, observation{3, "4"}, false},
		"the present generation again":          {observation{3, "4"}, observation{4, "4"}, observation{3, "4"}, false},
		"the present one after another":         {observation{2, "3"}, observation{4, "3"}, observation{3, "4"}, false},
		"the one before":                        {observation{2, ""}, observation{3, ""}, observation{3, ""}, false},
		"an older one than was seen":            {observation{3, "4"}, observation{3, "4"}, observation{3, "4"}, false},
		"none at all":                           {observation{0, ""}, observation{0, ""}, observation{0, ""}, false},
		"the present generation without a hold": {observation{3, ""}, observation{4, ""}, observation{4, ""}, true},
	} {
		for kind, of := range map[string]func(observation, bool) client.Object{"StatefulSet": statefulSetThat, "DaemonSet": daemonSetThat} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				asked := eval.Request{Old: of(test.old, !test.isFree), New: of(test.write, !test.isFree), Status: true}
				got, err := set.Admit(t.Context(), asked)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())

				NewWithT(t).Expect(whole(t, got)).To(Equal(whole(t, of(test.want, !test.isFree))))
			})
		}
	}
}

func statefulSetThat(o observation, isHeld bool) client.Object {
	return &appsv1.StatefulSet{
		ObjectMeta: metadataThat(o, isHeld),
		Spec:       appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: o.status, Replicas: 3, UpdatedReplicas: 1, UpdateRevision: "web-2"},
	}
}

func daemonSetThat(o observation, isHeld bool) client.Object {
	return &appsv1.DaemonSet{
		ObjectMeta: metadataThat(o, isHeld),
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: o.status, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1},
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
