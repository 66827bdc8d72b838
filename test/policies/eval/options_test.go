// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/config/options"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// TestOptions has the writes of labels and annotations evaluated.
func TestOptions(t *testing.T) {
	objects, err := policies.OptionsObjects()
	must(t, err)
	set, err := eval.Load(objects)
	must(t, err)
	cases, err := policies.OptionsCases()
	must(t, err)
	for _, one := range cases {
		t.Run(one.Name, func(t *testing.T) {
			before, written, err := one.Objects()
			must(t, err)
			_, err = set.Strict().Admit(t.Context(), eval.Request{Old: before, New: written, FieldManager: one.Manager})
			if one.Refused == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(one.Refused)))
		})
	}
}

// TestOptionsAreKnown holds that what the manager reads and writes is not refused.
func TestOptionsAreKnown(t *testing.T) {
	for _, key := range []string{
		native.GracePeriodSecondsAnnotation, native.KeepReadyAnnotation, native.DeadlineSecondsAnnotation, native.PodDisruptionBudgetAnnotation,
		native.ResizeAnnotation, native.PartitionAnnotation, native.PausedAnnotation,
		native.HeldPartitionAnnotation, native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation,
		native.StatusAnnotation, native.PreviousRevisionAnnotation, native.UpdatePolicyLabel, native.HeldLabel,
	} {
		NewWithT(t).Expect(string(options.Manifest)).To(ContainSubstring("'" + key + "'"))
	}
}
