// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// identityLabels are those that a pod has from its workload, beside those of its template.
var identityLabels = []string{
	appsv1beta1.PodNameLabel, appsv1beta1.PodIndexLabel, appsv1beta1.CloneSetInstanceIDKey,
	appsv1beta1.PodTemplateHashLabel, appsv1beta1.ControllerRevisionHashLabel,
}

// Successor returns a pod as it would be made at a revision in the place of one that
// has to go: to ask the API server by a dry run, before the pod goes, whether it would
// accept that. The server gives it its name, as the pod still has its own.
func Successor(pod *corev1.Pod, revision Revision) (*corev1.Pod, error) {
	raw, err := json.Marshal(revision.Template)
	if err != nil {
		return nil, fmt.Errorf("marshal pod template: %w", err)
	}
	made := corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, &made); err != nil {
		return nil, fmt.Errorf("read pod template: %w", err)
	}
	labels := map[string]string{}
	for _, key := range identityLabels {
		if value, has := pod.Labels[key]; has {
			labels[key] = value
		}
	}
	maps.Copy(labels, made.Labels)
	maps.Copy(labels, revisionLabels(revision))
	successor := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: pod.Name + "-",
			Labels: labels, Annotations: made.Annotations, OwnerReferences: slices.Clone(pod.OwnerReferences),
		},
		Spec: made.Spec,
	}
	for i := range successor.OwnerReferences {
		successor.OwnerReferences[i].BlockOwnerDeletion = nil // which takes rights on the owner
	}
	for _, claim := range claimVolumesOf(pod, revision) {
		successor.Spec.Volumes = slices.DeleteFunc(successor.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name })
		successor.Spec.Volumes = append(successor.Spec.Volumes, claim)
	}
	return successor, nil
}

// revisionLabels are those that name the revision of a pod. One that is not in the cluster yet
// may have a name that no label can have.
func revisionLabels(revision Revision) map[string]string {
	labels := map[string]string{}
	for key, value := range map[string]string{appsv1beta1.ControllerRevisionHashLabel: revision.Name, appsv1beta1.PodTemplateHashLabel: revision.Hash} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	return labels
}

// claimVolumesOf returns the volumes that a pod in the place of one has from the claim
// templates of a revision: those of the pod, if the revision says nothing about claims.
func claimVolumesOf(pod *corev1.Pod, revision Revision) []corev1.Volume {
	var claims []corev1.Volume
	if revision.ClaimTemplates == nil {
		for _, volume := range pod.Spec.Volumes {
			if source := volume.PersistentVolumeClaim; source != nil && source.ClaimName == volumes.ClaimName(volume.Name, pod.Name) {
				claims = append(claims, volume)
			}
		}
		return claims
	}
	for _, name := range revision.ClaimTemplates {
		claims = append(claims, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volumes.ClaimName(name, pod.Name)},
		}})
	}
	return claims
}

// keepIrreplaceable returns the step of a pod that is to be deleted, while the API server
// would not accept a new one in its place, or that could not get its images: it serves as it is.
func (s *situation) keepIrreplaceable() Step {
	refused, kept := s.facts.Irreplaceable, *s
	kept.frozen = true // nothing is recreated, also not for what was given up before
	if step := kept.finish(); step.Action == MarkReady || step.Action == SetLifecycle && !step.Deletes() {
		return step
	}
	state := Stuck
	if refused.Reason == ReasonAdmissionUnknown || refused.Reason == ReasonImagePull {
		state = Waiting // there is no answer yet
	}
	return Step{State: state, Reason: refused.Reason, Message: refused.Message, Until: refused.Until, Denied: refused.Denied}
}
