// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// idLength is how many characters an instance ID has.
const idLength = 5

var idPattern = regexp.MustCompile(`^[a-z0-9]{5}$`)

// podName returns the name of the pod with an instance ID: sample-x7k2p.
func podName(set, id string) string {
	return set + "-" + id
}

// idOf returns the instance ID of a pod or claim, and whether its name ends as
// those that the set gives: sample-x7k2p, data-sample-x7k2p.
func idOf(set, name string) (string, bool) {
	end := strings.LastIndex(name, "-")
	if end < 0 || !idPattern.MatchString(name[end+1:]) {
		return "", false
	}
	rest := name[:end]
	return name[end+1:], rest == set || strings.HasSuffix(rest, "-"+set)
}

// isPodName reports whether a pod has a name that the set gives.
func isPodName(set, pod string) bool {
	id, ok := idOf(set, pod)
	return ok && podName(set, id) == pod
}

// hashOf returns the value of pod-template-hash at a revision: the part of its
// name that the name of the set leaves.
func hashOf(set, revision string) string {
	return strings.TrimPrefix(revision, set+"-")
}

// newPod returns the pod with an instance ID at a revision, with claims from templates.
func newPod(set *appsv1beta1.CloneSet, revision *history.Revision, templates []corev1.PersistentVolumeClaim, id string) (workload.NewPod, error) {
	pod, err := workload.PodFrom(revision.InPlace(revision.Name()), ownerOf(set), podName(set.Name, id))
	if err != nil {
		return workload.NewPod{}, err
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1beta1.CloneSetInstanceIDKey, id)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1beta1.PodTemplateHashLabel, hashOf(set.Name, revision.Name()))
	workload.MountClaims(pod, templates)
	return workload.NewPod{Pod: pod, MadeUp: true, Claims: newClaims(set, templates, id)}, nil
}

// newClaims returns the claims of the pod with an instance ID from templates.
func newClaims(set *appsv1beta1.CloneSet, templates []corev1.PersistentVolumeClaim, id string) []*corev1.PersistentVolumeClaim {
	labels := map[string]string{}
	maps.Copy(labels, set.Spec.Selector.MatchLabels)
	labels[appsv1beta1.CloneSetInstanceIDKey] = id
	var claims []*corev1.PersistentVolumeClaim
	pod := client.ObjectKey{Namespace: set.Namespace, Name: podName(set.Name, id)}
	for i := range templates {
		claims = append(claims, workload.NewClaim(&templates[i], pod, labels, ownerOf(set).Reference()))
	}
	return claims
}

// idSource gives instance IDs to new pods.
type idSource struct {
	// free are the IDs whose claims wait for a pod; they are given first.
	free []string
	// claims are those of the set.
	claims []*corev1.PersistentVolumeClaim
	// taken are the IDs that no new pod gets.
	taken  sets.Set[string]
	random func(length int) string
}

// next returns the next instance ID.
func (i *idSource) next() string {
	if len(i.free) > 0 {
		id := i.free[0]
		i.free = i.free[1:]
		return id
	}
	for {
		if id := i.random(idLength); !i.taken.Has(id) {
			i.taken.Insert(id)
			return id
		}
	}
}
