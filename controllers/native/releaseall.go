// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/gates"
)

// How long ReleaseAll waits for one workload. An admission policy acts in the very
// write; without one, a manager that still runs does.
const (
	releasePatience = 20 * time.Second
	releasePause    = 500 * time.Millisecond
)

// ReleaseAll releases every held workload in the given namespaces, in all of them if
// none is given, and tells of each: Kubernetes then goes on with their rollouts. Pods that
// an update left behind at another revision are evicted, pods that pull images are deleted, and pods
// that were taken out of service serve again. It is for an uninstall, after which no manager does it. What
// cannot be released or evicted is in the error, and does not keep the others.
func ReleaseAll(ctx context.Context, c client.Client, namespaces []string, out io.Writer) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var errs []error
	for _, kind := range Kinds() {
		for _, namespace := range namespaces {
			errs = append(errs, releaseKind(ctx, c, kind, namespace, out))
		}
	}
	errs = append(errs, evictAllLeftovers(ctx, c, namespaces, out), gates.LetAllServe(ctx, c, namespaces, releasePatience, out))
	for _, namespace := range namespaces { // last: a manager that still runs may make others
		errs = append(errs, deleteAllPullers(ctx, c, namespace, out))
	}
	return errors.Join(errs...)
}

// deleteAllPullers deletes the pods that pull images for all workloads of a namespace.
func deleteAllPullers(ctx context.Context, c client.Client, namespace string, out io.Writer) error {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel}); err != nil {
		return fmt.Errorf("list pods that pull images: %w", err)
	}
	var errs []error
	for i := range list.Items {
		puller := &list.Items[i]
		if err := executor.DeletePuller(ctx, c, puller); err != nil {
			errs = append(errs, fmt.Errorf("delete pod %s/%s, which pulls images: %w", puller.Namespace, puller.Name, err))
			continue
		}
		fmt.Fprintf(out, "Deleted pod %s/%s, which pulled images\n", puller.Namespace, puller.Name)
	}
	return errors.Join(errs...)
}

func releaseKind(ctx context.Context, c client.Client, kind Kind, namespace string, out io.Writer) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.groupVersionKind())
	if err := c.List(ctx, list, client.InNamespace(namespace), client.HasLabels{native.HeldLabel}); err != nil {
		return fmt.Errorf("list held %ss: %w", kind, err)
	}
	var errs []error
	for i := range list.Items {
		held := &list.Items[i]
		held.SetGroupVersionKind(kind.groupVersionKind())
		if held.DeletionTimestamp != nil {
			continue
		}
		if err := releaseOne(ctx, c, held); err != nil {
			errs = append(errs, fmt.Errorf("release %s %s/%s: %w", kind, held.Namespace, held.Name, err))
			continue
		}
		fmt.Fprintf(out, "Released %s %s/%s\n", kind, held.Namespace, held.Name)
	}
	return errors.Join(errs...)
}

// releaseOne asks for the release of a workload, and waits until it is.
func releaseOne(ctx context.Context, c client.Client, held *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": held.UID, "labels": map[string]any{native.HeldLabel: native.Release},
	}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, held, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	err = wait.PollUntilContextTimeout(ctx, releasePause, releasePatience, true, func(ctx context.Context) (bool, error) {
		if _, isHeld := held.Labels[native.HeldLabel]; !isHeld {
			return true, nil
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(held), held)
		_, isHeld := held.Labels[native.HeldLabel]
		return !isHeld, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("it still has the label %s: neither an admission policy nor a manager took it off", native.HeldLabel)
	}
	return err
}
