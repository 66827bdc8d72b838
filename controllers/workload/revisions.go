// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// Revisions are the revisions of a workload, and the two that matter now.
type Revisions struct {
	*history.History
	// Update is the revision of the present template, Current the one that pods
	// run which the partition keeps.
	Update, Current *history.Revision
	// Collisions is the collision count for the status.
	Collisions int32
	// ByHash is that of the owner, see [history.Owner].
	ByHash bool
}

// MarkOf returns what pods at a revision have in their controller-revision-hash label.
func (r Revisions) MarkOf(revision *history.Revision) string {
	if r.ByHash {
		return revision.Hash()
	}
	return revision.Name()
}

// Of returns the revision that a pod says it is at, nil if it is not in the history.
func (r Revisions) Of(pod *corev1.Pod) *history.Revision {
	if r.ByHash {
		return r.GetByHash(inplace.RevisionOf(pod))
	}
	return r.Get(inplace.RevisionOf(pod))
}

// InPlace returns a revision as the planner knows it.
func (r Revisions) InPlace(revision *history.Revision) inplace.Revision {
	return revision.InPlace(r.MarkOf(revision))
}

// EnsureRevisions reads the history of a workload and makes sure that its present
// content has its revision in it. current is the name of the current revision in
// the status.
func EnsureRevisions(ctx context.Context, keeper *history.Keeper, owner history.Owner, content history.Content, current string) (Revisions, error) {
	revisions := Revisions{Collisions: owner.Collisions, ByHash: owner.ByHash}
	objects, err := keeper.List(ctx, owner)
	if err != nil {
		return revisions, err
	}
	if revisions.History, err = keeper.Read(objects); err != nil {
		return revisions, SpecError{Err: err}
	}
	revisions.Update, revisions.Collisions, err = keeper.Ensure(ctx, owner, revisions.History, content)
	if err != nil {
		return revisions, err
	}
	if revisions.Current = revisions.Get(current); revisions.Current == nil {
		revisions.Current = revisions.Update
	}
	return revisions, nil
}

// Truncate deletes revisions beyond the limit that no pod and no status needs any
// more.
func (r Revisions) Truncate(ctx context.Context, keeper *history.Keeper, pods []*corev1.Pod, limit int) error {
	inUse := sets.New(r.Update.Name(), r.Current.Name())
	for _, pod := range pods {
		if revision := r.Of(pod); revision != nil {
			inUse.Insert(revision.Name())
		}
	}
	return keeper.Truncate(ctx, r.History, inUse, limit)
}

// PodFrom returns a pod of a workload as the template of a revision says it.
func PodFrom(revision inplace.Revision, owner Owner, name string) (*corev1.Pod, error) {
	raw, err := json.Marshal(revision.Template)
	if err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", revision.Name, err)
	}
	template := corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, &template); err != nil {
		return nil, fmt.Errorf("read template of revision %s: %w", revision.Name, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: owner.GetNamespace(),
			Labels: maps.Clone(template.Labels), Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*owner.Reference()},
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1beta1.ControllerRevisionHashLabel, revision.Name)
	return pod, nil
}

// ClaimTemplates returns the claim templates of a revision. A revision that says
// nothing about claims, as those of OpenKruise, has the present ones.
func ClaimTemplates(revision *history.Revision, present []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	if revision.Claims == nil {
		return present
	}
	return revision.Claims
}
