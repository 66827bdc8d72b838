// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

// History is the revisions of a workload that can be gone back to.
type History struct {
	Ref `json:",inline"`
	// Revisions are the oldest first.
	Revisions []RecordedRevision `json:"revisions"`
	// Notes are what else is to be known: what could not be read, and why.
	Notes []string `json:"notes,omitempty"`
}

// RecordedRevision is a revision of a history, with all that it says.
type RecordedRevision struct {
	Revision `json:",inline"`
	// ChangeCause is why it was made, as its author said.
	ChangeCause string `json:"changeCause,omitempty"`
	// Template is its pod template, VolumeClaimTemplates its claim templates, if claims
	// are part of it.
	Template             map[string]any `json:"template"`
	VolumeClaimTemplates []any          `json:"volumeClaimTemplates,omitempty"`
}
