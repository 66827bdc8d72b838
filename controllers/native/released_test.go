// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
)

// A workload that is released has the strategy that its hold has put aside.
func TestReleased(t *testing.T) {
	g := NewWithT(t)
	held := metav1.ObjectMeta{Name: "web", Annotations: map[string]string{native.HeldPartitionAnnotation: "2", native.HeldMaxUnavailableAnnotation: "50%"}}

	deployment, err := Released(Deployment, &appsv1.Deployment{ObjectMeta: held, Spec: appsv1.DeploymentSpec{Paused: true, MinReadySeconds: 3}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(deployment).To(Equal(&appsv1.Deployment{ObjectMeta: held, Spec: appsv1.DeploymentSpec{MinReadySeconds: 3}}))

	set := &appsv1.StatefulSet{ObjectMeta: held}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	released, err := Released(StatefulSet, set)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(released).To(HaveField("Spec.UpdateStrategy.Type", appsv1.RollingUpdateStatefulSetStrategyType))
	g.Expect(released).To(HaveField("Spec.UpdateStrategy.RollingUpdate.Partition", ptr.To[int32](2)))
	g.Expect(set.Spec.UpdateStrategy.Type).To(Equal(appsv1.OnDeleteStatefulSetStrategyType), "the one that was given stays")
}
