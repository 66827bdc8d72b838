// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// skippedByUndo are the annotations of a Deployment that kubectl rollout undo keeps. All
// others are replaced by those of the ReplicaSet that it goes back to.
var skippedByUndo = []string{corev1.LastAppliedConfigAnnotation, rsRevision, rsHistory, rsDesired, rsMax}

// rolloutUndo is kubectl rollout undo --to-revision of a Deployment. It refuses one that
// is paused.
func (n *nativeWorkload) rolloutUndo(to *appsv1.ReplicaSet) {
	d, ok := n.object().(*appsv1.Deployment)
	r := n.revisionIn(&to.Spec.Template)
	if !ok || d.Spec.Paused || r == nil {
		return
	}
	n.world.previous, n.wish.revision = n.wish.revision, *r
	n.world.say("user: kubectl rollout undo to revision %s, ReplicaSet %s", r.name, to.Name)
	n.law.asked()
	isSkipped := func(key, _ string) bool { return slices.Contains(skippedByUndo, key) }
	n.write(func(obj client.Object) {
		d := obj.(*appsv1.Deployment) //nolint:forcetypeassert // it was one above
		d.Spec.Template = *to.Spec.Template.DeepCopy()
		delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		annotations := maps.Clone(to.Annotations)
		maps.DeleteFunc(annotations, isSkipped)
		for key, value := range d.Annotations {
			if isSkipped(key, value) {
				annotations[key] = value
			}
		}
		d.Annotations = annotations
	})
}

// revisionIn returns the revision of a template; nil if the user has none of them.
func (n *nativeWorkload) revisionIn(template *corev1.PodTemplateSpec) *revision {
	for i := range revisions {
		of := n.world.settings.template(revisions[i])
		if equalButHash(template, &of) {
			return &revisions[i]
		}
	}
	return nil
}
