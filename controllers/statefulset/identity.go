// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
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

// newPod returns the pod with an ordinal at a revision: what its template says,
// with the identity of the ordinal.
func newPod(set *appsv1beta1.StatefulSet, revision *history.Revision, ordinal int) (*corev1.Pod, error) {
	pod, err := workload.PodFrom(revision.InPlace(revision.Name()), ownerOf(set), podName(set.Name, ordinal))
	if err != nil {
		return nil, err
	}
	for key, value := range identityLabels(set.Name, ordinal) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	pod.Spec.Hostname = pod.Name
	pod.Spec.Subdomain = set.Spec.ServiceName
	workload.MountClaims(pod, workload.ClaimTemplates(revision, set.Spec.VolumeClaimTemplates))
	return pod, nil
}

// newClaims returns the claims of the pod with an ordinal at a revision.
func newClaims(set *appsv1beta1.StatefulSet, revision *history.Revision, ordinal int) []*corev1.PersistentVolumeClaim {
	templates := workload.ClaimTemplates(revision, set.Spec.VolumeClaimTemplates)
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	pod := client.ObjectKey{Namespace: set.Namespace, Name: podName(set.Name, ordinal)}
	for i := range templates {
		claims = append(claims, newClaim(set, &templates[i], pod))
	}
	return claims
}

// newClaim returns the claim that a pod has from a template.
func newClaim(set *appsv1beta1.StatefulSet, template *corev1.PersistentVolumeClaim, pod client.ObjectKey) *corev1.PersistentVolumeClaim {
	return workload.NewClaim(template, pod, set.Spec.Selector.MatchLabels, claimOwner(set, nil))
}
