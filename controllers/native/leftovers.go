// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
)

// A hold can end in the middle of an update: a user releases the Deployment, or opts it
// out. Some pods have the new template then, in the ReplicaSet of the old one. Kubernetes
// recreates all of them, unless the template of the Deployment is set back to that of the
// ReplicaSet: then it takes them for updated, and leaves them at the wrong one.

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// leftover is a pod that is not as the template of its ReplicaSet says, since an update in
// place ended in its middle.
type leftover struct {
	pod *corev1.Pod
	// lacks says what; empty if it cannot be told: the revision that the pod was updated
	// to is gone.
	lacks string
}

// hasMark reports whether an object can be a pod that was changed in place: it has the
// label of a revision, which Kubernetes gives no pod of a ReplicaSet, or sizes of ours.
func hasMark(pod metav1.Object) bool {
	if !workloads.IsKind(metav1.GetControllerOfNoCopy(pod), replicaSetKind) || pod.GetDeletionTimestamp() != nil {
		return false
	}
	fields := pod.GetManagedFields()
	for i := range fields {
		if resize.IsOwn(&fields[i]) {
			return true
		}
	}
	return pod.GetLabels()[appsv1beta1.ControllerRevisionHashLabel] != ""
}

// leftoversOf returns which of the pods of a ReplicaSet are left behind.
func leftoversOf(ctx context.Context, reader client.Reader, rs *replicaSet, pods []*corev1.Pod, now metav1.Time) ([]leftover, error) {
	templates := map[string]*inplace.Template{}
	var found []leftover
	for _, pod := range pods {
		if !hasMark(pod) || inplace.HasEnded(pod) {
			continue
		}
		hash := inplace.RevisionOf(pod)
		if _, isKnown := templates[hash]; !isKnown {
			template, err := templateAt(ctx, reader, rs, hash)
			if err != nil {
				return nil, err
			}
			templates[hash] = template
		}
		lacks := inplace.LeftBehind(pod, templates[hash], rs.template, now.Time)
		if isUnknown := templates[hash] == nil && inplace.UpdatedInPlace(pod); lacks != "" || isUnknown {
			found = append(found, leftover{pod, lacks})
		}
	}
	return found, nil
}

// templateAt returns the template of the revision of a Deployment that a label of its pods
// names; nil if there is none. A revision without a controller counts: that is what a
// deletion with --cascade=orphan leaves, which keeps the pods as well.
func templateAt(ctx context.Context, reader client.Reader, rs *replicaSet, hash string) (*inplace.Template, error) {
	owner := metav1.GetControllerOfNoCopy(rs)
	if hash == "" || owner == nil {
		return nil, nil
	}
	revision := &appsv1.ControllerRevision{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: rs.Namespace, Name: owner.Name + "-" + hash}, revision)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ControllerRevision %s/%s-%s: %w", rs.Namespace, owner.Name, hash, err)
	}
	if controller := metav1.GetControllerOfNoCopy(revision); controller != nil && controller.UID != owner.UID {
		return nil, nil
	}
	content, err := history.Decode(revision)
	if err != nil {
		return nil, err
	}
	return content.Template.Native(), nil
}
