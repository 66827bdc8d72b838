// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Kind is that of a Pool. No API server has it.
var Kind = schema.GroupVersionKind{Group: "test.insitu.dev", Version: "v1", Kind: "Pool"}

// Pool asks for pods that are alike. Its spec is that of a CloneSet, of which it ignores
// claims, surge, lifecycle, scaleStrategy and the order of updates.
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   appsv1beta1.CloneSetSpec      `json:"spec"`
	Status appsv1beta1.StatefulSetStatus `json:"status,omitzero"`
}

// List is a list of Pools.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Pool `json:"items"`
}

// AddToScheme makes the kind known.
func AddToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypeWithName(Kind, &Pool{})
	scheme.AddKnownTypeWithName(Kind.GroupVersion().WithKind(Kind.Kind+"List"), &List{})
}

// DeepCopyObject returns a copy.
func (p *Pool) DeepCopyObject() runtime.Object {
	copied := &Pool{TypeMeta: p.TypeMeta}
	p.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	p.Spec.DeepCopyInto(&copied.Spec)
	p.Status.DeepCopyInto(&copied.Status)
	return copied
}

// DeepCopyObject returns a copy.
func (l *List) DeepCopyObject() runtime.Object {
	copied := &List{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Pool)) //nolint:forcetypeassert // a copy has the type of its original
	}
	return copied
}

// CloneSet returns the same spec as that of a CloneSet, which says what its fields mean.
func (p *Pool) CloneSet() *appsv1beta1.CloneSet {
	return &appsv1beta1.CloneSet{ObjectMeta: p.ObjectMeta, Spec: p.Spec}
}
