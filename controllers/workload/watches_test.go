// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestASetThatTookThePlaceOfAnotherIsNoUpdateToIgnore(t *testing.T) {
	g := NewWithT(t)
	set := func(uid types.UID) *appsv1beta1.StatefulSet {
		return &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "sample", UID: uid, Generation: 1}}
	}
	g.Expect(SpecPredicate().Update(event.UpdateEvent{ObjectOld: set("one"), ObjectNew: set("two")})).To(BeTrue())
	g.Expect(SpecPredicate().Update(event.UpdateEvent{ObjectOld: set("one"), ObjectNew: set("one")})).To(BeFalse())
}
