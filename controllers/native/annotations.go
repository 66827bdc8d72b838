// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/apis/native"
)

// The annotations of ReplicaSets are more than a note: the controller of Deployments
// copies those of the Deployment to the ReplicaSet that is its present one, and never
// removes any, and kubectl rollout undo replaces all of the Deployment's by those of
// the ReplicaSet that it goes back to.

// Annotations by which ReplicaSets tell kubectl rollout history what they are.
const (
	// deploymentAnnotations begins those of the controller of Deployments.
	deploymentAnnotations = "deployment.kubernetes.io/"
	revisionAnnotation    = deploymentAnnotations + "revision"
	changeCauseAnnotation = "kubernetes.io/change-cause"
)

// ofHold are our annotations that say something of a hold. Elsewhere they mean nothing.
var ofHold = []string{
	native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation, native.HeldMinReadySecondsAnnotation,
	native.HeldProgressDeadlineSecondsAnnotation,
}

// ofKeeper are those that a ReplicaSet has only during a hold.
var ofKeeper = append([]string{native.KeeperAnnotation}, ofHold...)

// passing are our annotations that say something of the present update only.
var passing = append([]string{
	native.StatusAnnotation, native.PreviousRevisionAnnotation, native.PausedAnnotation, native.PartitionAnnotation,
}, ofKeeper...)

// tellsOfHold reports whether a Deployment, or a ReplicaSet that was given them, has
// annotations of a hold.
func tellsOfHold(obj interface{ GetAnnotations() map[string]string }) bool {
	return slices.ContainsFunc(ofKeeper, func(key string) bool { _, ok := obj.GetAnnotations()[key]; return ok })
}

// annotationsInHistory returns what the annotations of an empty ReplicaSet are to be
// that is what the keeper was: an undo keeps those of the Deployment.
func (w deployment) annotationsInHistory(before previous) map[string]string {
	annotations := maps.Clone(w.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, deploymentAnnotations) || key == corev1.LastAppliedConfigAnnotation || key == changeCauseAnnotation
	})
	for _, key := range passing {
		delete(annotations, key)
	}
	annotations[revisionAnnotation] = before.number
	if before.cause != "" {
		annotations[changeCauseAnnotation] = before.cause
	}
	return annotations
}

// replacing returns the patch by which one set of annotations takes the place of
// another.
func replacing(before, after map[string]string) map[string]any {
	patch := map[string]any{}
	for key := range before {
		if !strings.HasPrefix(key, deploymentAnnotations) {
			patch[key] = nil
		}
	}
	for key, value := range after {
		patch[key] = value
	}
	return patch
}

// staleAnnotations returns the patch by which a ReplicaSet has none of our annotations
// that its Deployment does not have, and is not promoted; empty if it has none. What it is in
// a hold it stays until that has ended.
func (w deployment) staleAnnotations(rs *replicaSet) map[string]any {
	patch := map[string]any{}
	for key := range rs.Annotations {
		_, isOption := w.Annotations[key]
		isOption = isOption && key != native.PreviousRevisionAnnotation && !slices.Contains(ofKeeper, key) ||
			key == native.KeeperAnnotation && w.Labels[native.HeldLabel] != ""
		if strings.HasPrefix(key, native.OptionPrefix) && !isOption {
			patch[key] = nil
		}
	}
	return patch
}
