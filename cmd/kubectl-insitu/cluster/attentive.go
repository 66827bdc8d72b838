// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attentive reads, and remembers whether something could not be read. What is decided
// without it says nothing of the operator, which has rights of its own. A node is no such thing:
// it says only whether a pull of images is short.
type attentive struct {
	client.Reader
	failed atomic.Bool
}

// Get implements client.Reader.
func (a *attentive) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := a.Reader.Get(ctx, key, object, options...)
	if _, isNode := object.(*corev1.Node); !isNode {
		a.note(client.IgnoreNotFound(err))
	}
	return err
}

// List implements client.Reader.
func (a *attentive) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := a.Reader.List(ctx, list, options...)
	a.note(err)
	return err
}

func (a *attentive) note(err error) {
	if err != nil {
		a.failed.Store(true)
	}
}
