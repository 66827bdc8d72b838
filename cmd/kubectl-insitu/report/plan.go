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
	// Pulls are what came of pulls of images onto nodes; empty if none were tried.
	Pulls []TriedPull `json:"pulls,omitempty"`
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

// PullResult is what came of a pull of images onto a node.
type PullResult string

// The results.
const (
	// OnNode: the node lists the images; none was pulled.
	OnNode PullResult = "OnNode"
	// Pulled: the images are on the node now.
	Pulled PullResult = "Pulled"
	// PullFailed: the kubelet cannot pull an image.
	PullFailed PullResult = "Failed"
	// PullRefused: the API server or the kubelet does not take the pod that pulls.
	PullRefused PullResult = "Refused"
	// NotTried: it would show nothing.
	NotTried PullResult = "NotTried"
	// PullUnanswered: the time was over before the kubelet had pulled or failed.
	PullUnanswered PullResult = "Unanswered"
)

// TriedPull is a pull of images onto a node that was tried.
type TriedPull struct {
	Node   string     `json:"node"`
	Images []string   `json:"images"`
	Result PullResult `json:"result"`
	// Seconds is how long it took, of those for which a pod was made. Message says why it failed.
	Seconds float64 `json:"seconds,omitempty"`
	Message string  `json:"message,omitempty"`
}

// With returns the pull with a result.
func (p TriedPull) With(result PullResult, message string) TriedPull {
	p.Result, p.Message = result, message
	return p
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
