// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
)

const (
	// deploymentAnnotations begins the annotations that the Deployment controller
	// writes to a ReplicaSet.
	deploymentAnnotations = "deployment.kubernetes.io/"
	// changeCauseAnnotation is what kubectl rollout history shows of a revision.
	changeCauseAnnotation = "kubernetes.io/change-cause"
)

// HasTemplate reports whether a ReplicaSet has its template. In the cache those
// that are empty and to stay so have none: theirs is to be read from the API
// server.
func HasTemplate(replicaSet *appsv1.ReplicaSet) bool {
	return len(replicaSet.Spec.Template.Spec.Containers) > 0
}

// trimReplicaSet keeps of a ReplicaSet what decisions read:
//
//   - what identifies it, its labels and owners, and of the annotations those that
//     tell a revision of a Deployment, and ours;
//   - how many pods it is to have, when they are available, its selector, and its
//     template while it has pods or is to have some;
//   - how many pods of which kind it has, and whether it fails to make them.
//
// A Deployment keeps ten empty ReplicaSets by default, each with the template of a
// revision. The manager reads those only for a rollback, and then from the API server.
// Trimming twice is trimming once. Anything but a ReplicaSet is returned as it is.
func trimReplicaSet(in any) (any, error) {
	whole, ok := in.(*appsv1.ReplicaSet)
	if !ok {
		return in, nil
	}
	trimmed := &appsv1.ReplicaSet{
		TypeMeta:   whole.TypeMeta,
		ObjectMeta: replicaSetMeta(&whole.ObjectMeta),
		Spec: appsv1.ReplicaSetSpec{
			Replicas: whole.Spec.Replicas, MinReadySeconds: whole.Spec.MinReadySeconds, Selector: whole.Spec.Selector,
		},
		Status: whole.Status,
	}
	trimmed.Status.Conditions = failures(whole.Status.Conditions)
	if ptr.Deref(whole.Spec.Replicas, 1) > 0 || whole.Status.Replicas > 0 {
		trimmed.Spec.Template = whole.Spec.Template
	}

	return trimmed, nil
}

// failures returns of conditions the one that says that pods cannot be made; nil if
// there is none. Few ReplicaSets have it.
func failures(conditions []appsv1.ReplicaSetCondition) []appsv1.ReplicaSetCondition {
	for _, condition := range conditions {
		if condition.Type == appsv1.ReplicaSetReplicaFailure {
			return []appsv1.ReplicaSetCondition{condition}
		}
	}

	return nil
}

func replicaSetMeta(whole *metav1.ObjectMeta) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:              whole.Name,
		Namespace:         whole.Namespace,
		UID:               whole.UID,
		ResourceVersion:   whole.ResourceVersion,
		Generation:        whole.Generation,
		CreationTimestamp: whole.CreationTimestamp,
		DeletionTimestamp: whole.DeletionTimestamp,
		Labels:            whole.Labels,
		OwnerReferences:   whole.OwnerReferences,
	}
	for name, value := range whole.Annotations {
		if strings.HasPrefix(name, deploymentAnnotations) || name == changeCauseAnnotation || strings.HasPrefix(name, native.OptionPrefix) {
			metav1.SetMetaDataAnnotation(&meta, name, value)
		}
	}

	return meta
}
