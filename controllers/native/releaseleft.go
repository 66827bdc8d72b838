// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
)

const (
	// leftoverPatience is how long ReleaseAll evicts pods that were left behind, of all
	// Deployments together. The Job of the chart has three tries in 4 minutes.
	leftoverPatience = time.Minute
	// podsAtATime is how many pods are read with one request.
	podsAtATime = 500
)

// evictAllLeftovers evicts the pods that are left behind, within the budget of their
// Deployments, and tells of each: later no manager does. What it cannot evict is in the
// error.
func evictAllLeftovers(ctx context.Context, c client.Client, namespaces []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, leftoverPatience)
	defer cancel()
	var errs []error
	for _, namespace := range namespaces {
		keys, err := replicaSetsWithMarks(ctx, c, namespace)
		errs = append(errs, err)
		for _, key := range keys {
			errs = append(errs, evictLeftovers(ctx, c, key, out))
		}
	}
	return errors.Join(errs...)
}

// replicaSetsWithMarks returns the ReplicaSets that have pods which were changed in place.
func replicaSetsWithMarks(ctx context.Context, c client.Client, namespace string) ([]client.ObjectKey, error) {
	found := sets.New[client.ObjectKey]()
	var keys []client.ObjectKey
	list := &metav1.PartialObjectMetadataList{}
	for {
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PodTemplateHashLabel},
			client.Limit(podsAtATime), client.Continue(list.Continue))
		if err != nil {
			return keys, fmt.Errorf("list pods that were updated in place: %w", err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if !hasMark(pod) {
				continue
			}
			key := client.ObjectKey{Namespace: pod.Namespace, Name: metav1.GetControllerOfNoCopy(pod).Name}
			if !found.Has(key) {
				keys = append(keys, key)
			}
			found.Insert(key)
		}
		if list.Continue == "" {
			return keys, nil
		}
	}
}

// evictLeftovers evicts the pods of a ReplicaSet that are left behind, one after the other.
func evictLeftovers(ctx context.Context, c client.Client, key client.ObjectKey, out io.Writer) error {
	var last *remains
	var refused error
	err := wait.PollUntilContextCancel(ctx, releasePause, true, func(ctx context.Context) (bool, error) {
		found, err := lookForLeftovers(ctx, c, key, metav1.Now())
		if err != nil {
			return false, err
		}
		if last = found; found == nil || hasHold(found.deployment) || found.isRecreated() || len(found.known()) == 0 {
			return true, nil
		}
		next := found.next()
		if next == nil {
			return found.isStanding() && found.hasNoRoom(), nil // others need the time
		}
		refused = executor.Evict(ctx, c, next.pod)
		if refused == nil {
			fmt.Fprintf(out, "Deployment %s/%s: %s\n", key.Namespace, found.deployment.Name, next.evicted())
		}
		return false, nil
	})
	switch {
	case err != nil && !wait.Interrupted(err):
		return err
	case err != nil && last == nil:
		return fmt.Errorf("pods of ReplicaSet %s were not looked at: the time was over", key)
	case last == nil || hasHold(last.deployment):
		return nil
	}
	return last.tellAtTheEnd(out, refused)
}

// tellAtTheEnd tells of pods that are still left behind. Those that Kubernetes is about to
// recreate are no error.
func (r *remains) tellAtTheEnd(out io.Writer, refused error) error {
	name := r.deployment.Namespace + "/" + r.deployment.Name
	if names := r.unknown(); len(names) > 0 {
		fmt.Fprintf(out, "Deployment %s: %s\n", name, unknownRevision(names))
	}
	known := strings.Join(r.known(), ", ")
	switch {
	case known == "":
		return nil
	case r.isRecreated():
		fmt.Fprintf(out, "Deployment %s: Kubernetes recreates pods %s, which were updated in place; until it has, do not set the template back\n", name, known)
		return nil
	}
	why, wayOut := r.whyWaiting()
	if refused != nil && !r.deployment.Spec.Paused && !apierrors.IsConflict(refused) && !apierrors.IsNotFound(refused) {
		why, wayOut = executor.RefusalOf(refused), "delete them"
	}
	return fmt.Errorf("an update in place that ended early left pods %s of Deployment %s at another revision, and they cannot be evicted: %s; %s",
		known, name, why, wayOut)
}
