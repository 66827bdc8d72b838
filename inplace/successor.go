// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Successor returns a pod as it would be made from a template in the place of one that
// has to go: to ask the API server by a dry run, before the pod goes, whether it would
// accept that. The server gives it its name, as the pod still has its own.
func Successor(pod *corev1.Pod, template *Template) (*corev1.Pod, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("marshal pod template: %w", err)
	}
	made := corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, &made); err != nil {
		return nil, fmt.Errorf("read pod template: %w", err)
	}
	successor := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: pod.Name + "-",
			Labels: withValues(pod.Labels, made.Labels), Annotations: made.Annotations, OwnerReferences: slices.Clone(pod.OwnerReferences),
		},
		Spec: made.Spec,
	}
	for i := range successor.OwnerReferences {
		successor.OwnerReferences[i].BlockOwnerDeletion = nil // which takes rights on the owner
	}
	for _, volume := range pod.Spec.Volumes {
		isListed := slices.ContainsFunc(successor.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name })
		if volume.PersistentVolumeClaim != nil && !isListed {
			successor.Spec.Volumes = append(successor.Spec.Volumes, volume) // of the claim templates of its workload
		}
	}
	return successor, nil
}
