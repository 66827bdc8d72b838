// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A conflict among other errors does not make them harmless.
func TestOnlyConflictsAreIgnored(t *testing.T) {
	g := NewWithT(t)
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "sample-0", errors.New("modified"))
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "sample-1", errors.New("exceeded quota"))
	g.Expect(IgnoreConflict(nil)).To(Succeed())
	g.Expect(IgnoreConflict(conflict)).To(Succeed())
	g.Expect(IgnoreConflict(errors.Join(conflict, fmt.Errorf("wrapped: %w", conflict)))).To(Succeed())
	g.Expect(IgnoreConflict(errors.Join(forbidden, conflict))).NotTo(Succeed())
	g.Expect(IgnoreConflict(errors.Join(conflict, forbidden))).NotTo(Succeed())
}

func TestFailuresSayWhenToComeBack(t *testing.T) {
	conflict := fmt.Errorf("wrapped: %w", apierrors.NewConflict(corev1.Resource("pods"), "sample-0", errors.New("modified")))
	for name, tc := range map[string]struct {
		errs []error
		want time.Duration
	}{
		"nothing":                    {nil, 0},
		"no error":                   {[]error{nil}, 0},
		"a conflict":                 {[]error{conflict}, conflictDelay},
		"a failure":                  {[]error{errors.New("refused")}, failureDelay},
		"a failure, then a conflict": {[]error{errors.New("refused"), conflict}, conflictDelay},
	} {
		t.Run(name, func(t *testing.T) {
			failures, requeue := Failures{}, Requeue(0)
			for _, err := range tc.errs {
				failures.Add(err)
			}
			requeue.After(Failures{}, failures)
			NewWithT(t).Expect(requeue.Result().RequeueAfter).To(Equal(tc.want))
		})
	}
}
