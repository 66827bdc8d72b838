// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// conflictDelay is when objects that changed while they were written to are
	// looked at again, if no event of theirs comes first.
	conflictDelay = time.Second
	// failureDelay is when what failed with single objects is tried again.
	failureDelay = 15 * time.Second
)

// Requeue is when to reconcile again at the latest; zero if nothing asks for it.
type Requeue time.Duration

// Within asks for another reconciliation at the latest after d.
func (r *Requeue) Within(d time.Duration) {
	if d > 0 && (*r == 0 || d < time.Duration(*r)) {
		*r = Requeue(d)
	}
}

// AfterConflict asks for another reconciliation on what is there now.
func (r *Requeue) AfterConflict() {
	r.Within(conflictDelay)
}

// After asks for what failures need: another look, or another try.
func (r *Requeue) After(failures ...Failures) {
	if slices.ContainsFunc(failures, func(f Failures) bool { return f.Conflicts > 0 }) {
		r.Within(conflictDelay)
	}
	if slices.ContainsFunc(failures, func(f Failures) bool { return len(f.Errs) > 0 }) {
		r.Within(failureDelay)
	}
}

// Result returns the result of a reconciliation.
func (r *Requeue) Result() reconcile.Result {
	return reconcile.Result{RequeueAfter: time.Duration(*r)}
}
