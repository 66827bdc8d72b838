// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
)

// Select returns the workloads of a kind in a namespace that a selector selects. A kind
// that is of two groups, as sts is, means both.
func (c *Cluster) Select(ctx context.Context, namespace, word string, selector labels.Selector) ([]Found, error) {
	called, err := kinds.Called(word)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, kind := range called {
		list := kind.NewList()
		err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s in namespace %s: %w", kind, namespace, err)
		}
		objects, err := itemsOf(list)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			found = append(found, Found{kind, object})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s was found in namespace %s with labels %q", word, namespace, selector)
	}
	return found, nil
}
