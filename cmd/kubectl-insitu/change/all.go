// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import "context"

// All returns an edit that makes all the given ones, one after the other. The outcome is
// that of the last.
func All(edits ...Edit) Edit {
	return func(ctx context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{}
		for _, edit := range edits {
			var err error
			if outcome, err = edit(ctx, w); err != nil {
				return outcome, err
			}
		}
		return outcome, nil
	}
}
