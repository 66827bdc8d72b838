// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verdicts are what all say of one workload of apps.kruise.io.
type Verdicts struct {
	// Flux is what Flux says, ArgoCD what our script makes Argo CD say, and Shipped
	// what it says by the script that it ships.
	Flux    status.Status
	ArgoCD  HealthStatus
	Shipped HealthStatus
	// Message is that of our script.
	Message string
	// Waited is whether `kubectl wait --for=condition=Ready` ends.
	Waited bool
}

// Judge asks all of them. script is ours.
func Judge(ctx context.Context, script string, obj *unstructured.Unstructured) (Verdicts, error) {
	flux, err := Kstatus(obj)
	if err != nil {
		return Verdicts{}, err
	}
	health, err := RunHealth(ctx, script, obj)
	return Verdicts{
		Flux: flux, ArgoCD: health.Status, Shipped: ShippedHealth(obj), Message: health.Message, Waited: fields{obj}.isReady(),
	}, err
}

// isReady reports whether the condition Ready is there as kubectl wait wants it: true,
// and not of an earlier generation.
func (f fields) isReady() bool {
	ready := f.condition("Ready")
	if ready == nil || ready["status"] != "True" {
		return false
	}
	observed, ok, _ := unstructured.NestedInt64(ready, "observedGeneration")
	if !ok {
		observed, ok = f.number("status", "observedGeneration")
	}
	return !ok || observed >= f.GetGeneration()
}
