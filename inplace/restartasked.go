// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// RestartedAtAnnotation in a pod template has all containers that run restarted when it
// is set to another value, as kubectl rollout restart does.
const RestartedAtAnnotation = "kubectl.kubernetes.io/restartedAt"

// askedRestarts returns, for every annotation of a template that asks for restarts, the
// containers that are restarted when it changes. An annotation that is taken away, as by
// the undo of a restart, asks for nothing.
func askedRestarts(annotations map[string]string, live []Container) []fieldRef {
	var found []fieldRef
	if _, ok := annotations[RestartedAtAnnotation]; ok {
		found = restartedBy(RestartedAtAnnotation, live)
	}
	for i, c := range live {
		key := appsv1beta1.RestartAnnotationPrefix + c.Name
		if _, ok := annotations[key]; ok {
			found = append(found, restartedBy(key, live[i:i+1])...)
		}
	}
	return found
}

// restartedBy returns that containers are restarted when an annotation changes.
func restartedBy(key string, containers []Container) []fieldRef {
	refs := make([]fieldRef, 0, len(containers))
	for _, c := range containers {
		refs = append(refs, fieldRef{field: annotationField(key), container: c.Name})
	}
	return refs
}

// annotationField returns the path of an annotation in the words of the downward API.
func annotationField(key string) string {
	return "metadata.annotations['" + key + "']"
}
