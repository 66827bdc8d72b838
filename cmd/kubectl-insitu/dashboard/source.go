// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// ErrNotFound is what a Source returns, wrapped, for a workload that is not there.
var ErrNotFound = errors.New("not found")

// Source is where the dashboard reads from. All methods may be called at the same time;
// errors are shown to the user as they are.
type Source interface {
	// List returns all workloads, pods and all. It is called after each change, and
	// every 10 s without one, so it should read from a cache.
	List(ctx context.Context) ([]report.Workload, error)
	// Changed delivers a value when List may return something new. Values are coalesced:
	// one stands for any number of changes. It returns the same channel each time.
	Changed() <-chan struct{}
	// Events returns what Kubernetes has recorded of a workload and of its pods, in any
	// order.
	Events(ctx context.Context, workload report.Ref) ([]Event, error)
	// Plan says what would come of a change, and writes nothing.
	Plan(ctx context.Context, workload report.Ref, change Change) (report.Plan, error)
}

// Change is what to plan: the containers of the template that change.
type Change struct {
	Containers []ContainerChange
}

// ContainerChange is what changes of a container, a native sidecar included.
type ContainerChange struct {
	Name string
	// Image is the new image; empty: it stays.
	Image string
	// Resources are added to those of the template. What is not named stays.
	Resources corev1.ResourceRequirements
}

// Event is one that Kubernetes has recorded.
type Event struct {
	// Time is when it last happened, Count how often it has.
	Time  time.Time `json:"time"`
	Count int32     `json:"count,omitempty"`
	// Pod is the name of the pod that it is about; empty for the workload itself.
	Pod string `json:"pod,omitempty"`
	// Warning is true for those that Kubernetes marks so.
	Warning bool   `json:"warning,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Reporter is who recorded it, such as kubelet.
	Reporter string `json:"reporter,omitempty"`
}
