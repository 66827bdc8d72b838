// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

// The API server notes in a pod's managedFields who set each request and limit
// last. Two constants name the entry that holds what we set. A value that is in it
// is ours: we may finish, change or take back what was begun with it. When somebody
// else sets another value, the API server takes the field out of our entry, and the
// value is theirs.
const (
	// FieldManager is the name under which the manager writes to the API server. It
	// stays the same from release to release: under another name, nothing that an
	// earlier release set would be ours any more.
	FieldManager = "insitu"

	// Subresource is the subresource of pods through which resources are changed,
	// and no other field.
	Subresource = "resize"
)
