// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// controllerHashLabel holds the hash of a revision that Kubernetes or OpenKruise made for a
// StatefulSet or a CloneSet.
const controllerHashLabel = "controller.kubernetes.io/hash"

// Orphans are objects without a controller that have the labels of a workload.
type Orphans struct {
	// Revisions have the workload's name and their hash as their names.
	Revisions []*appsv1.ControllerRevision
	Pods      []*corev1.Pod
}

// Own tells what is a workload's own: what its selector matches and, of the pods, those
// that IsPod says are.
type Own struct {
	Selector labels.Selector
	IsPod    func(*corev1.Pod) bool
}

// ListOrphans returns what a workload may have to adopt, without what is being
// deleted: of the pods, those that are its own. Where there are pods to adopt, revisions are read from the API server: the
// cache may still show them as those of the workload of before, and pods of a revision
// that is not known are recreated.
func ListOrphans(ctx context.Context, cached, live client.Reader, owner client.Object, own Own) (Orphans, error) {
	found := Orphans{}
	selected := client.MatchingLabelsSelector{Selector: own.Selector}
	pods := &corev1.PodList{}
	if err := podcache.Orphans(ctx, cached, owner.GetNamespace(), pods, selected); err != nil {
		return found, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil && own.IsPod(&pods.Items[i]) {
			found.Pods = append(found.Pods, &pods.Items[i])
		}
	}
	revisions := &appsv1.ControllerRevisionList{}
	var err error
	if len(found.Pods) == 0 {
		err = podcache.Orphans(ctx, cached, owner.GetNamespace(), revisions, selected)
	} else {
		err = live.List(ctx, revisions, client.InNamespace(owner.GetNamespace()), selected)
	}
	if err != nil {
		return found, fmt.Errorf("list revisions to adopt: %w", err)
	}
	for i := range revisions.Items {
		revision := &revisions.Items[i]
		switch {
		case !isRevisionOf(owner, revision) || revision.DeletionTimestamp != nil:
		case metav1.GetControllerOf(revision) == nil:
			found.Revisions = append(found.Revisions, revision)
		case metav1.IsControlledBy(revision, owner):
			if err := awaitAdoption(ctx, cached, owner, revision); err != nil {
				return found, err
			}
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

// awaitAdoption returns a conflict while the cache does not show that a revision was
// adopted: the answer to that write was lost.
func awaitAdoption(ctx context.Context, cached client.Reader, owner client.Object, revision *appsv1.ControllerRevision) error {
	known := &appsv1.ControllerRevision{}
	err := cached.Get(ctx, client.ObjectKeyFromObject(revision), known)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	if !metav1.IsControlledBy(known, owner) {
		return apierrors.NewConflict(appsv1.Resource("controllerrevisions"), revision.Name, errors.New("the cache does not show yet that it was adopted"))
	}
	return nil
}

// Adopt makes a workload the controller of orphans: it was deleted with
// --cascade=orphan and made again. With its revisions, what its pods were made
// from is known, and they can be changed in place. So revisions come first.
//
// It returns the names of the pods that the API server refuses to have adopted, which does
// not keep the others from it. Any other error ends the adoption: pods that may be ours in
// a moment are not to be made once more.
func Adopt(ctx context.Context, c client.Writer, live client.Reader, owner Owner, orphans Orphans) (sets.Set[string], Failures, error) {
	left, failures := sets.New[string](), Failures{}
	if len(orphans.Revisions)+len(orphans.Pods) == 0 {
		return left, failures, nil
	}
	if err := owner.Confirm(ctx, live); err != nil {
		return left, failures, err
	}
	for _, revision := range orphans.Revisions {
		if err := adopt(ctx, c, owner, revision); err != nil {
			return left, failures, err
		}
	}
	for _, pod := range orphans.Pods {
		err := adopt(ctx, c, owner, pod)
		switch {
		case executor.IsRefusal(err):
			left.Insert(pod.Name)
			failures.Add(err)
		case err != nil:
			return left, failures, err
		}
	}
	return left, failures, nil
}

// adopt makes a workload the controller of an orphan; one that is gone is no error.
func adopt(ctx context.Context, c client.Writer, owner Owner, orphan client.Object) error {
	if err := PatchOwners(ctx, c, orphan, owner.Reference()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adopt %T %s/%s: %w", orphan, orphan.GetNamespace(), orphan.GetName(), err)
	}
	return nil
}
