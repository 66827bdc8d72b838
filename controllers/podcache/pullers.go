// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// PullerIndex finds the pods that pull images by the UID of the workload that they do it for.
// What controls them may be another object.
const PullerIndex = "insitu.puller"

// Pullers reads into list the pods that pull images for a workload. The result is a copy as for
// [ByOwner].
func Pullers(ctx context.Context, reader client.Reader, workload client.Object, list *corev1.PodList, options ...client.ListOption) error {
	options = append([]client.ListOption{
		client.InNamespace(workload.GetNamespace()), client.MatchingFields{PullerIndex: string(workload.GetUID())},
	}, options...)
	if err := reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list pods that pull images for %s/%s: %w", workload.GetNamespace(), workload.GetName(), err)
	}

	return nil
}

// AllPullers reads into list the pods that pull images for all workloads of the cache. The result
// is a copy as for [ByOwner].
func AllPullers(ctx context.Context, reader client.Reader, list *corev1.PodList, options ...client.ListOption) error {
	options = append([]client.ListOption{client.MatchingFields{PullerIndex: anyWorkload}}, options...)
	if err := reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list pods that pull images: %w", err)
	}

	return nil
}

// anyWorkload is the value of PullerIndex that all pods that pull images have.
const anyWorkload = "*"

func pulledFor(obj client.Object) []string {
	workload, isPuller := obj.GetLabels()[appsv1beta1.PullerLabel]
	if !isPuller || workload == appsv1beta1.PullerOfPlan {
		return nil
	}

	return []string{workload, anyWorkload}
}
