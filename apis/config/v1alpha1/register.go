// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the manager's configuration.
const GroupName = "config.insitu.dev"

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// ConfigurationKind is the one kind of this package.
	ConfigurationKind = GroupVersion.WithKind("InsituConfiguration")

	// SchemeBuilder collects the functions that register these types.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types and their defaults.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &InsituConfiguration{})
	scheme.AddTypeDefaultingFunc(&InsituConfiguration{}, func(obj any) {
		SetDefaults(obj.(*InsituConfiguration))
	})
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
