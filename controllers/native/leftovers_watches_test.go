// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

func TestMarkedPassesPodsThatWereChangedInPlace(t *testing.T) {
	g := NewWithT(t)
	l := newLeft(g)
	ahead, other := l.pods[0], l.pods[1]
	g.Expect(marked().Create(event.CreateEvent{Object: ahead})).To(BeTrue())
	g.Expect(marked().Create(event.CreateEvent{Object: other})).To(BeFalse())
	before := ahead.DeepCopy()
	delete(before.Labels, appsv1beta1.ControllerRevisionHashLabel)
	g.Expect(marked().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: ahead})).To(BeTrue(), "it was changed")
	g.Expect(marked().Update(event.UpdateEvent{ObjectOld: ahead, ObjectNew: ahead})).To(BeFalse(), "its kubelet has reported")
	g.Expect(marked().Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other})).To(BeFalse())
	ofSet := ahead.DeepCopy()
	ofSet.OwnerReferences[0].Kind = "StatefulSet"
	g.Expect(marked().Create(event.CreateEvent{Object: ofSet})).To(BeFalse(), "their pods have the label from Kubernetes")
}

func TestMayBePresentPassesReplicaSetsThatAreNumbered(t *testing.T) {
	g := NewWithT(t)
	before := newLeft(g).replicaSet
	after := before.DeepCopy()
	after.Status.ReadyReplicas = 2
	g.Expect(mayBePresent().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeFalse(), "many change so, often")
	after.Annotations = map[string]string{revisionAnnotation: "3"}
	g.Expect(mayBePresent().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
}

func TestDeploymentsWhoseHoldEndsPass(t *testing.T) {
	g := NewWithT(t)
	labels := func(labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	held := labels(map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible", native.HeldLabel: native.Held})
	rest := labels(map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"})
	g.Expect(holdEnds().Update(event.UpdateEvent{ObjectOld: held, ObjectNew: rest})).To(BeTrue())
	g.Expect(holdEnds().Update(event.UpdateEvent{ObjectOld: rest, ObjectNew: held})).To(BeFalse())
	g.Expect(holdEnds().Update(event.UpdateEvent{ObjectOld: held, ObjectNew: held})).To(BeFalse())
	g.Expect(holdEnds().Delete(event.DeleteEvent{Object: rest})).To(BeTrue(), "opted out")
}

func TestLeftoversAreLookedForInReplicaSets(t *testing.T) {
	g := NewWithT(t)
	l := newLeft(g)
	var evicted []string
	controller := NewLeftovers(l.client(g, &evicted), nil, nil, nil)
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web-1"}}
	g.Expect(controller.replicaSets(t.Context(), l.deployment)).To(ConsistOf(request))
	g.Expect(replicaSetOf(t.Context(), l.pods[0])).To(ConsistOf(request))
	g.Expect(replicaSetOf(t.Context(), l.deployment)).To(BeEmpty())
}
