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

// parsed remembers what revisions hold by the hash of their data, which never changes:
// a workload's revisions are read whenever it is looked at. A thousand are those of a
// hundred workloads with the usual history.
var parsed = lru.New(1024)

// Decode returns what a ControllerRevision holds, ours or one of Kubernetes. The caller
// may change the claim templates.
func Decode(revision *appsv1.ControllerRevision) (Content, error) {
	key := sha256.Sum256(revision.Data.Raw)
	if known, ok := parsed.Get(key); ok {
		return known.(Content).copied(), nil //nolint:forcetypeassert // nothing else is remembered
	}
	content, err := decode(revision.Data.Raw)
	if err != nil {
		return Content{}, fmt.Errorf("read ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	parsed.Add(key, content)
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
