// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"context"
	"testing"
	"time"
)

// Tests of pure packages may use a context and a clock.
func TestAllowed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Until(time.Now().Add(time.Second)))
	defer cancel()
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
}
