// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
)

// TargetOf returns what the details of in-place updates, and the annotations of a workload with so
// many pods, say of a target. Revision, policy and hooks are for the kind to add.
func TargetOf(strategy appsv1beta1.InPlaceUpdateStrategy, annotations map[string]string, replicas int) inplace.Target {
	return inplace.Target{
		GracePeriod:    time.Duration(max(strategy.GracePeriodSeconds, 0)) * time.Second,
		KeepReady:      strategy.KeepReady,
		Deadline:       time.Duration(ptr.Deref(strategy.DeadlineSeconds, 0)) * time.Second,
		RespectBudgets: strategy.PodDisruptionBudget == appsv1beta1.RespectPodDisruptionBudget,
		Resize:         resizePolicy(strategy.Resize),
		Pull:           PullPolicyOf(strategy, annotations, replicas),
	}
}

func resizePolicy(policy *appsv1beta1.ResizePolicy) resize.Policy {
	timeout, _ := policy.GetDeferredTimeout()
	return resize.Policy{
		OnDeferred:      policy.GetOnDeferred(),
		OnInfeasible:    policy.GetOnInfeasible(),
		OnError:         policy.GetOnError(),
		DeferredTimeout: timeout,
		Enforce:         policy.GetDrift() == appsv1beta1.EnforceResizeDrift,
	}
}

// MaxConcurrentClaims returns of how many of a number of pods the claims may be
// changing at a time.
func MaxConcurrentClaims(strategy appsv1beta1.VolumeClaimUpdateStrategy, replicas int) int {
	return int(strategy.GetMaxConcurrent(int32(replicas))) //nolint:gosec // replicas come from an int32
}

// MaxConcurrentResizes returns how many of a number of pods may be resized at a
// time.
func MaxConcurrentResizes(strategy appsv1beta1.InPlaceUpdateStrategy, replicas int) int {
	return int(strategy.Resize.GetMaxConcurrent(int32(replicas))) //nolint:gosec // replicas come from an int32
}
