// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions;daemonsets;deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch

// Options returns the options of a cache of the given namespaces; of all
// namespaces if there are none. Pods, EndpointSlices, ReplicaSets and nodes are trimmed.
// No object has managedFields, but for pods that we have resized. Of the
// Deployments, StatefulSets and DaemonSets of Kubernetes only those that are opted
// in are there; all others are not found.
func Options(namespaces []string) cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                {Transform: trimPod},
			&discoveryv1.EndpointSlice{}: {Transform: trimEndpointSlice},
			&corev1.Node{}:               {Transform: TrimNode},
			// Whose ReplicaSets they are their labels do not tell.
			&appsv1.ReplicaSet{}:  {Transform: trimReplicaSet},
			&appsv1.Deployment{}:  {Label: optedIn()},
			&appsv1.StatefulSet{}: {Label: optedIn()},
			&appsv1.DaemonSet{}:   {Label: optedIn()},
		},
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}

	return options
}

// optedIn selects the workloads of Kubernetes that have an update policy, whatever
// its value: one that is not known is told to its author.
func optedIn() labels.Selector {
	// The error is for values, of which there are none here, and for keys that are
	// no labels.
	hasPolicy, _ := labels.NewRequirement(native.UpdatePolicyLabel, selection.Exists, nil)

	return labels.NewSelector().Add(*hasPolicy)
}
