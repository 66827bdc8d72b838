// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: appsv1beta1.GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that register these types.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StatefulSet{}, &StatefulSetList{}, &CloneSet{}, &CloneSetList{}, &DaemonSet{}, &DaemonSetList{},
		&ImagePullJob{}, &ImagePullJobList{}, &ImageListPullJob{}, &ImageListPullJobList{},
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
