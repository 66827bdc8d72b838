// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// controllerHashLabel holds the hash of a revision that Kubernetes or OpenKruise made for a
// StatefulSet or a CloneSet.
const controllerHashLabel = "controller.kubernetes.io/hash"

// Orphans are objects without a controller that have the labels of a workload.
type Orphans struct {
	// Revisions have the workload's name and their hash as their names.
	Revisions []*appsv1.ControllerRevision
	// Pods are for the kind to tell its own from, by their names.
	Pods []*corev1.Pod
}

// ListOrphans returns what a workload may have to adopt, without what is being
// deleted.
func ListOrphans(ctx context.Context, reader client.Reader, owner client.Object, selector labels.Selector) (Orphans, error) {
	found := Orphans{}
	selected := client.MatchingLabelsSelector{Selector: selector}
	revisions := &appsv1.ControllerRevisionList{}
	if err := podcache.Orphans(ctx, reader, owner.GetNamespace(), revisions, selected); err != nil {
		return found, err
	}
	for i := range revisions.Items {
		if revision := &revisions.Items[i]; isRevisionOf(owner, revision) && revision.DeletionTimestamp == nil {
			found.Revisions = append(found.Revisions, revision)
		}
	}
	pods := &corev1.PodList{}
	if err := podcache.Orphans(ctx, reader, owner.GetNamespace(), pods, selected); err != nil {
		return found, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			found.Pods = append(found.Pods, &pods.Items[i])
		}
	}
	return found, nil
}

// isRevisionOf reports whether a revision has the name that those of a workload have: its
// own, and the hash. Kubernetes and OpenKruise keep the hash in either of two labels.
func isRevisionOf(owner client.Object, revision *appsv1.ControllerRevision) bool {
	hash, ok := strings.CutPrefix(revision.Name, owner.GetName()+"-")
	hashes := []string{revision.Labels[appsv1beta1.ControllerRevisionHashLabel], revision.Labels[controllerHashLabel]}
	return ok && hash != "" && slices.Contains(hashes, hash)
}

// Adopt makes a workload the controller of orphans: it was deleted with
// --cascade=orphan and made again. With its revisions, what its pods were made
// from is known, and they can be changed in place. So revisions come first.
func Adopt(ctx context.Context, c client.Writer, live client.Reader, owner Owner, orphans Orphans) error {
	var all []client.Object
	for _, revision := range orphans.Revisions {
		all = append(all, revision)
	}
	for _, pod := range orphans.Pods {
		all = append(all, pod)
	}
	if len(all) == 0 {
		return nil
	}
	if err := owner.Confirm(ctx, live); err != nil {
		return err
	}
	for _, orphan := range all {
		if err := PatchOwners(ctx, c, orphan, owner.Reference()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("adopt %T %s/%s: %w", orphan, orphan.GetNamespace(), orphan.GetName(), err)
		}
	}
	return nil
}
