// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lenient reads what most users may not: the classes of their claims. One that is kept
// from them is taken to allow everything, and noted.
type lenient struct {
	client.Client

	mutex sync.Mutex
	notes sets.Set[string]
}

func newLenient(c client.Client) *lenient {
	return &lenient{Client: c, notes: sets.New[string]()}
}

// Get implements client.Reader.
func (l *lenient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := l.Client.Get(ctx, key, object, options...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	var what string
	switch class := object.(type) {
	case *storagev1.StorageClass:
		what, class.Name, class.AllowVolumeExpansion = "StorageClass", key.Name, ptr.To(true)
	case *storagev1.VolumeAttributesClass:
		what, class.Name = "VolumeAttributesClass", key.Name
	default:
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.notes.Insert(fmt.Sprintf("you may not read %s %s: it is taken to exist, and to allow what is asked for", what, key.Name))
	return nil
}

// said returns what was noted.
func (l *lenient) said() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return sets.List(l.notes)
}
