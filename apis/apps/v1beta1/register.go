// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group that Insitu shares with OpenKruise.
const GroupName = "apps.kruise.io"

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

	// StatefulSetKind is the group, version and kind of a StatefulSet, as
	// controller references name it.
	StatefulSetKind = GroupVersion.WithKind("StatefulSet")

	// CloneSetKind is the group, version and kind of a CloneSet, as controller
	// references name it.
	CloneSetKind = GroupVersion.WithKind("CloneSet")

	// DaemonSetKind is the group, version and kind of a DaemonSet, as controller
	// references name it.
	DaemonSetKind = GroupVersion.WithKind("DaemonSet")

	// ImagePullJobKind is the group, version and kind of an ImagePullJob, as controller
	// references name it.
	ImagePullJobKind = GroupVersion.WithKind("ImagePullJob")

	// ImageListPullJobKind is the group, version and kind of an ImageListPullJob, as controller
	// references name it.
	ImageListPullJobKind = GroupVersion.WithKind("ImageListPullJob")

	// ContainerRecreateRequestKind is the group, version and kind of a ContainerRecreateRequest.
	ContainerRecreateRequestKind = GroupVersion.WithKind("ContainerRecreateRequest")

	// SchemeBuilder collects the functions that register these types.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this package.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the qualified name of a resource of this group, for errors
// such as NotFound.
func Resource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: GroupName, Resource: resource}
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StatefulSet{}, &StatefulSetList{}, &CloneSet{}, &CloneSetList{}, &DaemonSet{}, &DaemonSetList{},
		&ImagePullJob{}, &ImagePullJobList{}, &ImageListPullJob{}, &ImageListPullJobList{},
		&ContainerRecreateRequest{}, &ContainerRecreateRequestList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
