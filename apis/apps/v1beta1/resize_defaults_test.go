// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestDefaultsOfResizePolicies(t *testing.T) {
	for name, policy := range map[string]*appsv1beta1.ResizePolicy{
		"absent": appsv1beta1.InPlaceUpdateStrategy{}.Resize,
		"empty":  {},
		"unknown values": {
			OnDeferred: "Hope", OnInfeasible: "Delete", OnError: "Retry", Drift: "Fight",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(policy.GetOnDeferred()).To(Equal(appsv1beta1.WaitResizeDeferred))
			g.Expect(policy.GetOnInfeasible()).To(Equal(appsv1beta1.KeepResizeFailure))
			g.Expect(policy.GetOnError()).To(Equal(appsv1beta1.KeepResizeFailure))
			g.Expect(policy.GetDrift()).To(Equal(appsv1beta1.LeaveResizeDrift))
			g.Expect(policy.GetMaxConcurrent(40)).To(Equal(int32(10)))

			_, limited := policy.GetDeferredTimeout()
			g.Expect(limited).To(BeFalse())
		})
	}
}

func TestValuesOfResizePolicies(t *testing.T) {
	g := NewWithT(t)

	deferred := &appsv1beta1.ResizePolicy{OnDeferred: appsv1beta1.RecreateResizeDeferred, DeferredTimeoutSeconds: ptr.To[int32](90)}
	g.Expect(deferred.GetOnDeferred()).To(Equal(appsv1beta1.RecreateResizeDeferred))
	timeout, limited := deferred.GetDeferredTimeout()
	g.Expect(limited).To(BeTrue())
	g.Expect(timeout).To(Equal(90 * time.Second))

	infeasible := &appsv1beta1.ResizePolicy{OnInfeasible: appsv1beta1.RecreateResizeFailure}
	g.Expect(infeasible.GetOnInfeasible()).To(Equal(appsv1beta1.RecreateResizeFailure))
	g.Expect(infeasible.GetOnError()).To(Equal(appsv1beta1.KeepResizeFailure))

	failed := &appsv1beta1.ResizePolicy{OnError: appsv1beta1.RecreateResizeFailure}
	g.Expect(failed.GetOnError()).To(Equal(appsv1beta1.RecreateResizeFailure))
	g.Expect(failed.GetOnInfeasible()).To(Equal(appsv1beta1.KeepResizeFailure))

	enforced := &appsv1beta1.ResizePolicy{Drift: appsv1beta1.EnforceResizeDrift}
	g.Expect(enforced.GetDrift()).To(Equal(appsv1beta1.EnforceResizeDrift))
}

func TestMaxConcurrentResizes(t *testing.T) {
	for name, test := range map[string]struct {
		value    intstr.IntOrString
		replicas int32
		want     int32
	}{
		"number":                  {intstr.FromInt32(3), 10, 3},
		"number above replicas":   {intstr.FromInt32(30), 10, 30},
		"percentage, rounded":     {intstr.FromString("25%"), 7, 1},
		"percentage of all":       {intstr.FromString("100%"), 7, 7},
		"percentage of few":       {intstr.FromString("1%"), 10, 1},
		"percentage of no pod":    {intstr.FromString("50%"), 0, 1},
		"no number":               {intstr.FromInt32(0), 10, 1},
		"malformed, so carefully": {intstr.FromString("most"), 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &appsv1beta1.ResizePolicy{MaxConcurrent: &test.value}

			NewWithT(t).Expect(policy.GetMaxConcurrent(test.replicas)).To(Equal(test.want))
		})
	}
}
