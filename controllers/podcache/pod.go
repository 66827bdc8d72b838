// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// trimPod keeps of a pod what decisions read:
//
//   - metadata, without the annotation of kubectl apply, and of managedFields only
//     which resources we have set ourselves;
//   - of the spec: node name or, without one, the node that the pod was made for, readiness gates, grace period, priority class, resources, the
//     tolerations, the claims among the volumes, and of each container its name, image, pull
//     policy, resources, resize and restart policy, and the environment
//     variables that come from the pod's own fields or set its launch order;
//   - the whole status.
//
// It changes the pod it is given, which no other code has seen yet. Trimming twice
// is trimming once. Anything but a pod is returned as it is: tombstones hold
// pods that were trimmed when they came in.
func trimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	pod.ManagedFields = ownResizes(pod.ManagedFields)
	delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
	pod.Spec = corev1.PodSpec{
		Volumes:                       claimVolumes(pod.Spec.Volumes),
		InitContainers:                trimContainers(pod.Spec.InitContainers),
		Containers:                    trimContainers(pod.Spec.Containers),
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		NodeName:                      pod.Spec.NodeName,
		ReadinessGates:                pod.Spec.ReadinessGates,
		Resources:                     pod.Spec.Resources,
		PriorityClassName:             pod.Spec.PriorityClassName,
		Tolerations:                   sharedTolerations(pod.Spec.Tolerations),
		Affinity:                      targetNode(&pod.Spec),
	}

	return pod, nil
}

// usualTolerations are those that the API server gives to each pod (DefaultTolerationSeconds). Most
// pods have no others.
var usualTolerations = []corev1.Toleration{usualToleration(corev1.TaintNodeNotReady), usualToleration(corev1.TaintNodeUnreachable)}

func usualToleration(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)}
}

// sharedTolerations returns the same list for all pods with the usual tolerations, which takes no
// memory for each.
func sharedTolerations(tolerations []corev1.Toleration) []corev1.Toleration {
	if apiequality.Semantic.DeepEqual(tolerations, usualTolerations) {
		return usualTolerations
	}

	return tolerations
}

// ownResizes returns the entries of what this manager has set by resizing the pod;
// nil for a pod that was never resized, as most are. One takes about 300 bytes,
// those that are left out several thousand.
func ownResizes(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var own []metav1.ManagedFieldsEntry
	for i := range entries {
		if resize.IsOwn(&entries[i]) {
			own = append(own, entries[i])
		}
	}

	return own
}

// claimVolumes returns the volumes that are claims, with nothing but the claim.
func claimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var claims []corev1.Volume
	for _, volume := range volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claims = append(claims, corev1.Volume{
			Name:         volume.Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: volume.PersistentVolumeClaim},
		})
	}

	return claims
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	if containers == nil {
		return nil
	}
	trimmed := make([]corev1.Container, len(containers))
	for i, container := range containers {
		trimmed[i] = corev1.Container{
			Name:            container.Name,
			Image:           container.Image,
			ImagePullPolicy: container.ImagePullPolicy,
			Env:             decisiveEnv(container.Env),
			Resources:       container.Resources,
			ResizePolicy:    container.ResizePolicy,
			RestartPolicy:   container.RestartPolicy,
		}
	}

	return trimmed
}

// decisiveEnv returns the variables that come from fields of the pod, since a change
// of the field reaches them only when the container restarts, and the one that
// gives the container its place in the launch order.
func decisiveEnv(env []corev1.EnvVar) []corev1.EnvVar {
	var kept []corev1.EnvVar
	for _, variable := range env {
		if variable.Name == appsv1beta1.ContainerLaunchPriorityEnv {
			kept = append(kept, corev1.EnvVar{Name: variable.Name, Value: variable.Value})
		}
		if variable.ValueFrom == nil || variable.ValueFrom.FieldRef == nil {
			continue
		}
		kept = append(kept, corev1.EnvVar{
			Name:      variable.Name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: variable.ValueFrom.FieldRef},
		})
	}

	return kept
}
