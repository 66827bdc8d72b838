// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
)

// TargetOf returns what the details of in-place updates say of a target. Revision,
// policy and hooks are for the kind to add.
func TargetOf(strategy appsv1beta1.InPlaceUpdateStrategy) inplace.Target {
	return inplace.Target{
		GracePeriod:    time.Duration(max(strategy.GracePeriodSeconds, 0)) * time.Second,
		KeepReady:      strategy.KeepReady,
		Deadline:       time.Duration(ptr.Deref(strategy.DeadlineSeconds, 0)) * time.Second,
		RespectBudgets: strategy.PodDisruptionBudget == appsv1beta1.RespectPodDisruptionBudget,
		Resize:         resizePolicy(strategy.Resize),
		Pull:           pullPolicy(strategy.ImagePull),
	}
}

func pullPolicy(policy *appsv1beta1.ImagePullPolicy) inplace.PullPolicy {
	if policy == nil {
		return inplace.PullPolicy{}
	}
	return inplace.PullPolicy{
		Policy:      cmp.Or(policy.Policy, appsv1beta1.RequireImagePull),
		Timeout:     time.Duration(ptr.Deref(policy.TimeoutSeconds, appsv1beta1.DefaultImagePullTimeoutSeconds)) * time.Second,
		Parallelism: int(ptr.Deref(policy.Parallelism, 0)),
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
