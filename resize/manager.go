// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

const (
	// FieldManager is the name under which the operator writes to pods/resize. It
	// never changes: what an earlier release wrote is known by it, see Written.
	FieldManager = "insitu"
	// Subresource is the subresource of pods that changes their resources.
	Subresource = "resize"
)
