// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch

// Options returns the options of a cache of the given namespaces; of all
// namespaces if there are none. Pods and EndpointSlices are trimmed. No object has
// managedFields, but for pods that we have resized.
func Options(namespaces []string) cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                {Transform: trimPod},
			&discoveryv1.EndpointSlice{}: {Transform: trimEndpointSlice},
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
