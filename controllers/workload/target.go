// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// TargetOf returns what the details of in-place updates say of a target. Revision,
// policy and hooks are for the kind to add.
func TargetOf(strategy appsv1beta1.InPlaceUpdateStrategy) inplace.Target {
	return inplace.Target{
		GracePeriod:    time.Duration(max(strategy.GracePeriodSeconds, 0)) * time.Second,
		KeepReady:      strategy.KeepReady,
		Deadline:       time.Duration(ptr.Deref(strategy.DeadlineSeconds, 0)) * time.Second,
		RespectBudgets: strategy.PodDisruptionBudget == appsv1beta1.RespectPodDisruptionBudget,
	}
}
