// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import corev1 "k8s.io/api/core/v1"

// forbiddenImage is the image that the policy on images forbids.
const forbiddenImage = "app:forbidden"

// firstTemplate is what is wrong with the first template of a set.
type firstTemplate string

const (
	// firstMissing: its image does not exist.
	firstMissing firstTemplate = "missing"
	// firstForbidden: the server refuses its pods.
	firstForbidden firstTemplate = "forbidden"
)

// forbiddenRevision asks for the image that the policy on images forbids.
var forbiddenRevision = revision{"forbidden", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = forbiddenImage }}

// firstRevision returns the revision with which the set is made.
func (s settings) firstRevision() revision {
	switch s.wider.first {
	case firstMissing:
		return revisionNamed("missing")
	case firstForbidden:
		return forbiddenRevision
	default:
		return revisions[0]
	}
}
