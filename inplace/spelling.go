// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
)

// Users of our kinds set fields; those of the workloads of Kubernetes, which lack them, set
// a label and annotations. Messages name what the workload has.

// policyReCreates says why a pod is recreated that could be changed in place. Workloads of
// Kubernetes have no such policy.
func (t Target) policyReCreates() string {
	if t.PolicyField != "" {
		return t.PolicyField + " changes no pod in place"
	}
	return "podUpdatePolicy is ReCreate"
}

// policyIs says that the target has a policy, in the words by which its user sets that.
func (t Target) policyIs(policy appsv1beta1.PodUpdateStrategyType) string {
	if t.isNative() {
		return fmt.Sprintf("label %s=%s", nativeapi.UpdatePolicyLabel, policy)
	}
	return fmt.Sprintf("%s %s", cmp.Or(t.PolicyField, "podUpdatePolicy"), policy)
}

// recreatesOn says by which option pods are recreated whose resize does not succeed.
func (t Target) recreatesOn(option string) string {
	if t.isNative() {
		return fmt.Sprintf("annotation %s and %q:%q", nativeapi.ResizeAnnotation, option, appsv1beta1.RecreateResizeFailure)
	}
	return fmt.Sprintf("inPlaceUpdateStrategy.resize.%s %s", option, appsv1beta1.RecreateResizeFailure)
}

// isNative reports whether the target is one of a workload of Kubernetes.
func (t Target) isNative() bool { return t.Template != nil && t.Template.native }
