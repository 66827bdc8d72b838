// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

// Way is how a pod gets to a revision.
type Way string

// The ways.
const (
	// Unchanged: the pod has what the change wants.
	Unchanged Way = "Unchanged"
	// InPlace: the pod stays, and is changed.
	InPlace Way = "InPlace"
	// Recreate: the pod is deleted, and made again.
	Recreate Way = "Recreate"
	// Refused: the pod stays as it is, since its change is refused, or not allowed to be
	// made the one way in which it could be.
	Refused Way = "Refused"
	// Kept: the partition, a pause or the strategy keeps the pod as it is.
	Kept Way = "Kept"
	// Delete: the pod goes for good.
	Delete Way = "Delete"
)

// Feasibility is what a node says to new resources of a pod.
type Feasibility string

// The feasibilities.
const (
	// Fits: the node has room now.
	Fits Feasibility = "Fits"
	// Deferred: the node could hold the pod, and has no room now.
	Deferred Feasibility = "Deferred"
	// Infeasible: the node can never hold the pod.
	Infeasible Feasibility = "Infeasible"
	// UnknownRoom: it could not be found out.
	UnknownRoom Feasibility = "Unknown"
)

// Plan is what would come of a change of a workload, if it were applied now.
type Plan struct {
	Workload Ref `json:"workload"`
	// Changes are the fields of the object that change, as path: before -> after.
	Changes []string       `json:"changes"`
	Pods    []PlannedPod   `json:"pods"`
	Claims  []PlannedClaim `json:"claims,omitempty"`
	// Refusals say who would refuse what, in the words of the API server.
	Refusals []string `json:"refusals,omitempty"`
	// Notes are what else is to be known: what could not be asked, and why.
	Notes []string `json:"notes,omitempty"`
}

// PlannedPod is what would become of a pod.
type PlannedPod struct {
	Name string `json:"name"`
	Way  Way    `json:"way"`
	// Reason and Message say why it is that way.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Restarts names the containers that are restarted, Resizes those whose resources
	// change, with what they are and become.
	Restarts []string `json:"restarts,omitempty"`
	Resizes  []string `json:"resizes,omitempty"`
	// Drains: the pod is taken out of service for it.
	Drains bool `json:"drains,omitempty"`
	// Feasibility says whether its node has room for its new resources; empty if they
	// stay. FeasibilityMessage says why.
	Feasibility        Feasibility `json:"feasibility,omitempty"`
	FeasibilityMessage string      `json:"feasibilityMessage,omitempty"`
}

// PlannedClaim is what would become of a claim.
type PlannedClaim struct {
	Name string `json:"name"`
	Pod  string `json:"pod,omitempty"`
	// Change says what changes: 1Gi -> 2Gi. Blocked says that it cannot, with Reason and
	// Message.
	Change  string `json:"change"`
	Blocked bool   `json:"blocked,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
