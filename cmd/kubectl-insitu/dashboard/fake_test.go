// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// fakeSource says what a test puts into it.
type fakeSource struct {
	changed chan struct{}

	mu        sync.Mutex
	workloads []report.Workload
	err       error
	events    []Event
	eventsErr error
	plan      func(report.Ref, Change) (report.Plan, error)
}

func newFakeSource(workloads ...report.Workload) *fakeSource {
	return &fakeSource{changed: make(chan struct{}, 1), workloads: workloads}
}

func (f *fakeSource) List(context.Context) ([]report.Workload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.workloads), f.err
}

func (f *fakeSource) Changed() <-chan struct{} { return f.changed }

func (f *fakeSource) Events(context.Context, report.Ref) ([]Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events), f.eventsErr
}

func (f *fakeSource) Plan(_ context.Context, ref report.Ref, change Change) (report.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.plan(ref, change)
}

// set changes what the source says, and tells that it did.
func (f *fakeSource) set(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// workload returns one of kind Deployment in namespace shop, with pods in these states.
func workload(name string, states ...string) report.Workload {
	w := report.Workload{
		Ref:      report.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
		UID:      types.UID(name),
		Phase:    report.Progressing,
		Replicas: int32(len(states)), Revisions: []report.Revision{}, Blockers: []report.Blocker{}, Pods: []report.Pod{},
	}
	for i, state := range states {
		podName := fmt.Sprintf("%s-%d", name, i)
		w.Pods = append(w.Pods, report.Pod{Name: podName, UID: types.UID(podName), State: state, Containers: []report.Container{}})
	}
	return w
}

// names returns the names of workloads.
func names(t *testing.T, list []report.Workload) []string {
	t.Helper()
	found := make([]string, 0, len(list))
	for i := range list {
		found = append(found, list[i].Name)
	}
	return found
}
