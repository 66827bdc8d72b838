// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package flux holds what Flux is to be told of the workloads of Kubernetes whose
// rollouts go in place, for those who use it from Go.
package flux

import (
	_ "embed"
)

// StatefulSet is YAML for the spec of a Kustomization: healthCheckExprs for the
// StatefulSets of Kubernetes.
//
//go:embed statefulset.yaml
var StatefulSet string
