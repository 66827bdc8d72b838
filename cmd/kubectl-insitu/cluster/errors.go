// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain says of a refusal that it is about the rights of the user, if it is.
func Explain(err error) error {
	if IsForWantOfRights(err) {
		return fmt.Errorf("you lack a right that this command needs (docs/plugin.md lists them): %w", err)
	}
	return err
}

// IsForWantOfRights reports whether the API server refuses a request since the user may
// not make it, and not for what it says: admission forbids with the same code.
func IsForWantOfRights(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot ") && strings.Contains(err.Error(), " resource ")
}
