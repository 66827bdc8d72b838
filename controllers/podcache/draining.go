// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// DrainingIndex finds the pods that were taken out of service for an update:
// those that may wait to leave an EndpointSlice.
const DrainingIndex = "insitu.draining"

const draining = "true"

// Draining reads into list the pods of a namespace that were taken out of
// service. The result is a copy as for [ByOwner].
func Draining(ctx context.Context, reader client.Reader, namespace string, list *corev1.PodList, options ...client.ListOption) error {
	options = append([]client.ListOption{client.InNamespace(namespace), client.MatchingFields{DrainingIndex: draining}}, options...)
	if err := reader.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list pods out of service in namespace %s: %w", namespace, err)
	}

	return nil
}

func drainingOf(obj client.Object) []string {
	pod, ok := obj.(*corev1.Pod)
	if !ok || !inplace.IsMarkedNotReady(pod) {
		return nil
	}

	return []string{draining}
}
