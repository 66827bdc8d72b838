// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/informers"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the dispatchers ask an API server for. Nothing of it changes.
var (
	matcher       = matching.NewMatcher(namespaces{}, nil)
	policyMatcher = generic.NewPolicyMatcher(matcher)
	interfaces    = objectInterfaces{admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme)}
)

// namespaces has every namespace, with the label that the API server gives it.
type namespaces struct {
	listers.NamespaceLister
}

func (namespaces) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}, nil
}

// converters has no schema: JSON patches need none.
type converters struct{}

func (converters) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return managedfields.NewDeducedTypeConverter()
}

func (converters) Run(context.Context) {}

// objectInterfaces knows one version of each kind, so that converting is copying.
type objectInterfaces struct {
	admission.ObjectInterfaces
}

func (o objectInterfaces) GetObjectConvertor() runtime.ObjectConvertor {
	return convertor{o.ObjectInterfaces.GetObjectConvertor()}
}

func (objectInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return defaulter{} }

type convertor struct {
	runtime.ObjectConvertor
}

func (convertor) Convert(in, out, _ any) error {
	from, to := reflect.ValueOf(in), reflect.ValueOf(out)
	if from.Type() != to.Type() {
		return fmt.Errorf("convert a %s: it is to be a %s", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())

	return nil
}

// informerOf returns an informer that has seen the objects.
func informerOf(objects []client.Object) informers.GenericInformer {
	return informer{objects: objects}
}

type informer struct {
	cache.SharedIndexInformer

	objects []client.Object
}

func (i informer) Informer() cache.SharedIndexInformer { return i }
func (i informer) HasSynced() bool                     { return true }

func (i informer) Lister() cache.GenericLister {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, obj := range i.objects {
		if err := indexer.Add(obj); err != nil {
			return unknown{err: err}
		}
	}

	return cache.NewGenericLister(indexer, schema.GroupResource{Resource: "parameters"})
}

// unknown is the lister of objects that cannot be kept.
type unknown struct {
	err error
}

func (u unknown) List(labels.Selector) ([]runtime.Object, error)  { return nil, u.err }
func (u unknown) Get(string) (runtime.Object, error)              { return nil, u.err }
func (u unknown) ByNamespace(string) cache.GenericNamespaceLister { return u }
