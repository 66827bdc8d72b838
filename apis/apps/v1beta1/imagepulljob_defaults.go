// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// What an ImagePullJob does that does not say it.
const (
	DefaultPullJobParallelism    = 1
	DefaultPullJobTimeoutSeconds = 600
	DefaultPullJobBackoffLimit   = 3
)

// ImagePullJobFinalizer is what OpenKruise puts on the jobs that it has not completed. Insitu
// has no use for it, and takes it off jobs that are deleted.
const ImagePullJobFinalizer = "apps.kruise.io/deletion-protection"

// GetParallelism returns how many nodes pull at a time; none, if what is said is no number.
func (t *ImagePullJobTemplate) GetParallelism() int {
	if t.Parallelism == nil {
		return DefaultPullJobParallelism
	}

	return max(t.Parallelism.IntValue(), 0)
}

// GetTimeout returns after how long a try has failed.
func (t *ImagePullJobTemplate) GetTimeout() time.Duration {
	return time.Duration(ptr.Deref(t.PullPolicy.TimeoutSeconds, DefaultPullJobTimeoutSeconds)) * time.Second
}

// GetBackoffLimit returns how often a node tries; at least once.
func (t *ImagePullJobTemplate) GetBackoffLimit() int {
	return int(max(ptr.Deref(t.PullPolicy.BackoffLimit, DefaultPullJobBackoffLimit), 1))
}

// GetImagePullPolicy returns whether a node that has an image asks the registry again.
func (t *ImagePullJobTemplate) GetImagePullPolicy() corev1.PullPolicy {
	return cmp.Or(t.ImagePullPolicy, corev1.PullIfNotPresent)
}

// GetNodeNames returns the names of the nodes, where those are what says which.
func (t *ImagePullJobTemplate) GetNodeNames() []string {
	if t.Selector == nil {
		return nil
	}

	return t.Selector.Names
}

// IsEndless reports whether a job is never complete.
func (p *CompletionPolicy) IsEndless() bool {
	return p.Type == NeverCompletion
}
