// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
)

// podName returns the name of the pod with an ordinal: sample-0.
func podName(set string, ordinal int) string {
	return set + "-" + strconv.Itoa(ordinal)
}

// ordinalOf returns the ordinal of a pod, and whether its name is one that the
// set gives: sample-0, and not sample-00 or sample-x-0.
func ordinalOf(set, pod string) (int, bool) {
	digits, ok := strings.CutPrefix(pod, set+"-")
	if !ok {
		return 0, false
	}
	ordinal, err := strconv.Atoi(digits)
	if err != nil || podName(set, ordinal) != pod || ordinal < 0 {
		return 0, false
	}
	return ordinal, true
}

// claimName returns the name of a pod's claim: data-sample-0.
func claimName(template, set string, ordinal int) string {
	return template + "-" + podName(set, ordinal)
}

// newPod returns the pod with an ordinal at a revision: what its template says,
// with the identity of the ordinal.
func newPod(set *appsv1beta1.StatefulSet, revision *history.Revision, ordinal int) (*corev1.Pod, error) {
	raw, err := json.Marshal(revision.Template)
	if err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", revision.Name(), err)
	}
	template := corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", revision.Name(), err)
	}
	name := podName(set.Name, ordinal)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
		},
		Spec: template.Spec,
	}
	for key, value := range identityLabels(set.Name, ordinal) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1beta1.ControllerRevisionHashLabel, revision.Name())
	pod.Spec.Hostname = name
	pod.Spec.Subdomain = set.Spec.ServiceName
	mountClaims(pod, claimTemplates(set, revision), ordinal, set.Name)
	return pod, nil
}

// claimTemplates returns the claim templates of a revision. A revision that says
// nothing about claims, as those of OpenKruise, has those of the set.
func claimTemplates(set *appsv1beta1.StatefulSet, revision *history.Revision) []corev1.PersistentVolumeClaim {
	if revision.Claims == nil {
		return set.Spec.VolumeClaimTemplates
	}
	return revision.Claims
}

// mountClaims makes each claim a volume of the pod, in place of a volume of the
// same name.
func mountClaims(pod *corev1.Pod, templates []corev1.PersistentVolumeClaim, ordinal int, set string) {
	for i := range templates {
		name := templates[i].Name
		volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(name, set, ordinal)},
		}}
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
}

// newClaims returns the claims of the pod with an ordinal at a revision.
func newClaims(set *appsv1beta1.StatefulSet, revision *history.Revision, ordinal int) []*corev1.PersistentVolumeClaim {
	templates := claimTemplates(set, revision)
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	var owners []metav1.OwnerReference
	if owner := claimOwner(set, nil); owner != nil {
		owners = []metav1.OwnerReference{*owner}
	}
	for i := range templates {
		template := templates[i].DeepCopy()
		labels := maps.Clone(template.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, set.Spec.Selector.MatchLabels)
		claims = append(claims, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: claimName(template.Name, set.Name, ordinal), Namespace: set.Namespace,
				Labels: labels, Annotations: template.Annotations, OwnerReferences: owners,
			},
			Spec: template.Spec,
		})
	}
	return claims
}
