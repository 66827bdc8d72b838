// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Select returns the workloads of a kind in a namespace that a selector selects. A kind
// that is of two groups, as sts is, means both.
func (c *Cluster) Select(ctx context.Context, namespace, word string, selector labels.Selector) ([]Found, error) {
	kinds, err := kindsCalled(word)
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, kind := range kinds {
		list := kind.NewList()
		err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s in namespace %s: %w", kind, namespace, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok {
				found = append(found, Found{kind, object})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s was found in namespace %s with labels %q", word, namespace, selector)
	}
	return found, nil
}

// KindOf returns the kind of an object of a manifest, and false if it is none that the
// plugin knows. The version does not matter.
func KindOf(object runtime.Object) (Kind, bool) {
	group := object.GetObjectKind().GroupVersionKind().GroupKind()
	for _, kind := range Kinds() {
		if kind.GroupKind() == group {
			return kind, true
		}
	}
	return Kind{}, false
}

// Spellings returns how the kinds are spelled.
func Spellings() string {
	return strings.Join(spellings(Kinds()), ", ")
}
