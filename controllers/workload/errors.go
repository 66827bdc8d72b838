// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SpecError is an error that lasts until a user changes an object: the
// workload, or a revision that cannot be read.
type SpecError struct {
	Err error
	// Reason is InvalidSpec, if it is empty.
	Reason string
}

func (e SpecError) Error() string {
	return e.Err.Error()
}

func (e SpecError) Unwrap() error {
	return e.Err
}

// IgnoreConflict turns errors that only say that something changed meanwhile
// into nothing.
func IgnoreConflict(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var others []error
		for _, e := range joined.Unwrap() {
			others = append(others, IgnoreConflict(e))
		}
		return errors.Join(others...)
	}
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Failures are what went wrong with single objects. It does not keep the others
// from being worked on.
type Failures struct {
	Errs []error
	// Conflicts is how many objects were no longer as they were read: they are
	// to be looked at again.
	Conflicts int
}

// Join adds what went wrong with others.
func (f *Failures) Join(others Failures) {
	f.Errs, f.Conflicts = append(f.Errs, others.Errs...), f.Conflicts+others.Conflicts
}

// Add adds an error; nil adds nothing.
func (f *Failures) Add(err error) {
	switch {
	case err == nil:
	case apierrors.IsConflict(err):
		f.Conflicts++
	default:
		f.Errs = append(f.Errs, err)
	}
}
