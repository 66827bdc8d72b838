// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
)

// Phase is one part of a round.
type Phase[S Set] func(context.Context, S) error

// Set is a workload in one round.
type Set interface {
	// Base returns what all kinds have in common.
	Base() *Round
}

// Base returns r: what embeds it is a Set.
func (r *Round) Base() *Round { return r }

// Shell reconciles the workloads of a kind: O is the object of one, S what a round knows of it.
type Shell[O client.Object, S Set] struct {
	*Core
	// Begin returns what is known of an object before the first phase.
	Begin func(O) S
	// Phases bring the pods of a workload one step nearer to its spec. The first error ends
	// them. What goes wrong with single pods is collected in the round instead.
	Phases []Phase[S]
	// Report says in the status what came of it. failure is what ended the phases, if any.
	Report func(ctx context.Context, s S, failure error) error
	// Gone is called where there is no such object any more; it may be nil.
	Gone func(ctx context.Context, key types.NamespacedName) error
}

// Reconcile brings the pods of one workload one step nearer to its spec. object is an empty one
// of its kind.
func (s *Shell[O, S]) Reconcile(ctx context.Context, key types.NamespacedName, object O) (ctrl.Result, error) {
	if err := s.Client.Get(ctx, key, object); err != nil {
		s.Metrics.ForgetIfGone(key, err)
		if apierrors.IsNotFound(err) && s.Gone != nil {
			err = s.Gone(ctx, key)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		// The garbage collector deletes the pods, by their owner reference, or has them kept.
		s.Metrics.Forget(key)
		// Those that pull images are not of use any more, and would stay if the others are kept.
		return ctrl.Result{}, executor.DeletePullers(ctx, s.Client, object)
	}
	set, err := s.Advance(ctx, object)
	if reportErr := s.Report(ctx, set, err); reportErr != nil {
		err = errors.Join(err, reportErr)
	}
	return set.Base().End(ctx, err)
}

// Advance runs the phases for an object, and returns what they have found and done.
func (s *Shell[O, S]) Advance(ctx context.Context, object O) (S, error) {
	set := s.Begin(object)
	set.Base().CannotResize = !s.Capabilities.CanResize(ctx)
	for _, run := range s.Phases {
		if err := run(ctx, set); err != nil {
			return set, err
		}
	}
	return set, nil
}
