// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha256"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// Decode returns what a ControllerRevision holds, ours or one of Kubernetes.
func Decode(revision *appsv1.ControllerRevision) (Content, error) {
	content, err := decode(revision.Data.Raw)
	if err != nil {
		return Content{}, fmt.Errorf("read ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return content, nil
}

// memory remembers what revisions hold by the hash of their data, which never changes: a
// workload's revisions are read whenever it is looked at.
type memory struct {
	known *lru.Cache
}

// newMemory returns a memory for a thousand revisions: those of a hundred workloads with
// the usual history.
func newMemory() memory { return memory{lru.New(1024)} }

// decode is Decode. The caller may change the claim templates.
func (m memory) decode(revision *appsv1.ControllerRevision) (Content, error) {
	key := sha256.Sum256(revision.Data.Raw)
	if known, ok := m.known.Get(key); ok {
		return known.(Content).copied(), nil //nolint:forcetypeassert // nothing else is remembered
	}
	content, err := Decode(revision)
	if err != nil {
		return Content{}, err
	}
	m.known.Add(key, content)
	return content.copied(), nil
}

// copied returns the content with claim templates of its own. Templates of pods never
// change.
func (c Content) copied() Content {
	if c.Claims == nil {
		return c
	}
	claims := make([]corev1.PersistentVolumeClaim, len(c.Claims))
	for i := range c.Claims {
		c.Claims[i].DeepCopyInto(&claims[i])
	}
	c.Claims = claims
	return c
}
