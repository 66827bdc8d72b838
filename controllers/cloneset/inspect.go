// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	utilrand "k8s.io/apimachinery/pkg/util/rand"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Inspect returns what a reconciliation of a set decides, which may be another one than
// the API server has. Nothing is written.
func Inspect(ctx context.Context, eyes workload.Eyes, set *appsv1beta1.CloneSet) workload.Inspection {
	r := NewReconciler(eyes.Client, eyes.Live, workload.SilentRecorder(), eyes.Clock, utilrand.String)
	r.LookWith(eyes)
	s, failure := r.shell().Advance(ctx, set.DeepCopy())
	return s.Inspection(failure)
}
