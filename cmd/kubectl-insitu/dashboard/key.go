// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// key names a workload in addresses: group/kind/namespace/name.
type key string

func keyOf(ref report.Ref) key {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	return key(strings.Join([]string{group, ref.Kind, ref.Namespace, ref.Name}, "/"))
}
