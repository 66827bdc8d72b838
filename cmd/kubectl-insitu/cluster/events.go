// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// Events returns the events of a namespace that are about objects with these UIDs.
func (c *Cluster) Events(ctx context.Context, namespace string, uids sets.Set[string]) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, Explain(fmt.Errorf("list events: %w", err))
	}
	return slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return !uids.Has(string(event.InvolvedObject.UID)) }), nil
}

// Get returns the workload of a kind and a name.
func (c *Cluster) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (Found, error) {
	found := Found{kind, kind.New()}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found.Object); err != nil {
		return Found{}, Explain(fmt.Errorf("read %s/%s in namespace %s: %w", kind, name, namespace, err))
	}
	return found, nil
}
