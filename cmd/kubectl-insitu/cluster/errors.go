// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explain says of a refusal that it is about the rights of the user.
func explain(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you lack a right that this command needs (the ClusterRole view has those to read): %w", err)
	}
	return err
}
