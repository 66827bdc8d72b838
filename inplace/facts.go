// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/volumes"
)

// Target is what a pod shall become, and how.
type Target struct {
	Revision
	// Policy says what to do with what cannot change in place.
	Policy appsv1beta1.PodUpdateStrategyType
	// PolicyField is the field that says so, for messages; empty for podUpdatePolicy.
	PolicyField string
	// GracePeriod is how long a pod stays out of service before it is changed.
	// It has no effect on pods that cannot be drained.
	GracePeriod time.Duration
	// KeepReady names the containers that restart while the pod stays in
	// service.
	KeepReady []string
	// Deadline is after how long an update of one pod is reported as stuck;
	// zero means never.
	Deadline time.Duration
	// RespectBudgets is true when no serving pod is taken out of service that the
	// API server would not allow to be evicted.
	RespectBudgets bool
	// Pull says whether images are pulled onto the node of a pod before it is taken out of
	// service for them.
	Pull PullPolicy
	// Resize says what to do when a pod cannot be resized.
	Resize resize.Policy
	// CannotDrain says why the API server keeps no pod out of service that has no
	// readiness gate for it; nil where it does.
	CannotDrain *Refusal
	// MustDrain is true where containers of a pod that serves and cannot be drained are
	// not restarted, but for those in KeepReady.
	MustDrain bool
	// CannotResize is true when the API server does not serve pods/resize.
	CannotResize bool
	// IgnoresClaims is true when a live pod keeps the claims that it has, whatever claim
	// templates the revision has.
	IgnoresClaims bool
	// ClaimsGoWithPods is true when the claims of a pod are deleted with it.
	ClaimsGoWithPods bool
	// Lifecycle holds the hooks of the workload; nil if it has none.
	Lifecycle *appsv1beta1.Lifecycle
	// ShowsState is true when pods name the state of their lifecycle also without hooks: new
	// ones are PreparingNormal until they have a node.
	ShowsState bool
}

// PodFacts is what is known of one pod.
type PodFacts struct {
	Pod *corev1.Pod
	// From is the revision that the pod's label names; nil if it is not in the
	// history.
	From *Revision
	// Services holds the names of the Services whose EndpointSlices still send
	// traffic to the pod.
	Services []string
	// Asked is true when the workload asks for the deletion of the pod, as a label
	// of the pod can.
	Asked bool
	// Held is true for a pod that stays at its revision for now: the partition
	// keeps it.
	Held bool
	// Surges is true for a pod that is Held since another one, made beside it, takes its place.
	Surges bool
	// MakesRoomAtCurrent is true for a pod that is asked for, and in whose place a new one is
	// made at the current revision: the partition has room for no other. MakesNoRoom is true for
	// one in whose place none is made: there are enough without it.
	MakesRoomAtCurrent, MakesNoRoom bool
	// Priority is how early the update of the pod starts: not while that of a pod with a
	// higher one is still to come. Pods without priorities do not wait for each other.
	Priority Priority
	// Refused is set when the API server refuses the change in place that the pod
	// needs for the target.
	Refused *Refusal
	// Irreplaceable is set when the API server would not accept a new pod in the place of
	// this one, or the images of a new one cannot be pulled: it is neither deleted nor evicted.
	Irreplaceable *Refusal
	// Claims are the steps of the pod's claims towards the templates of the target;
	// empty where they are not to be changed.
	Claims volumes.Claims
	// read is what Read has found; nil if it was not called.
	read *observed
}

// ComesBackAt returns the revision at which a new pod is made in the place of one; nil if none
// is made.
func (w Workload) ComesBackAt(facts PodFacts) *Revision {
	switch {
	case facts.MakesNoRoom:
		return nil
	case !facts.Held && !facts.MakesRoomAtCurrent:
		return &w.Target.Revision
	case w.Current != nil:
		return w.Current
	case facts.From != nil:
		return facts.From
	default:
		return &w.Target.Revision
	}
}

// Read returns the facts, complete, with what the pod records of its updates. It is
// read again by each plan otherwise; the plans that share it are made for the same
// moment.
func (f PodFacts) Read(now time.Time) PodFacts {
	f.read = observedOf(f.Pod, now)
	if f.From != nil {
		f.read.template = f.From.Template
	}
	return f
}

func (f PodFacts) observedAt(now time.Time) *observed {
	if f.read == nil {
		f = f.Read(now)
	}
	return f.read
}
