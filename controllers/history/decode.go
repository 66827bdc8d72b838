// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// Decode returns what a ControllerRevision holds, ours or one of Kubernetes.
func Decode(revision *appsv1.ControllerRevision) (Content, error) {
	content, err := decode(revision.Data.Raw)
	if err != nil {
		return Content{}, fmt.Errorf("read ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return content, nil
}
