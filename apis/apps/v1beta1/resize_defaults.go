// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultMaxConcurrentResizes is maxConcurrent of a policy that does not say it.
const DefaultMaxConcurrentResizes = "25%"

// The methods below read a policy with its defaults applied. Like those of a
// StatefulSet, they are pure and accept any object; a nil policy is one that says
// nothing.

// GetOnDeferred returns what happens while the node has no room for the new size.
func (p *ResizePolicy) GetOnDeferred() ResizeDeferredPolicy {
	if p != nil && p.OnDeferred == RecreateResizeDeferred {
		return RecreateResizeDeferred
	}

	return WaitResizeDeferred
}

// GetOnInfeasible returns what happens when the node can never hold the new size.
func (p *ResizePolicy) GetOnInfeasible() ResizeFailurePolicy {
	if p == nil {
		return KeepResizeFailure
	}

	return keepUnlessRecreate(p.OnInfeasible)
}

// GetOnError returns what happens when the API server refuses the new size, or
// the node fails to apply it.
func (p *ResizePolicy) GetOnError() ResizeFailurePolicy {
	if p == nil {
		return KeepResizeFailure
	}

	return keepUnlessRecreate(p.OnError)
}

// GetDeferredTimeout returns how long to wait for room, and false if there is no
// limit.
func (p *ResizePolicy) GetDeferredTimeout() (time.Duration, bool) {
	if p == nil || p.DeferredTimeoutSeconds == nil {
		return 0, false
	}

	return time.Duration(max(*p.DeferredTimeoutSeconds, 1)) * time.Second, true
}

// GetMaxConcurrent returns how many of a number of pods may be resized at a time
// without a restart. A percentage is rounded down; the result is at least 1.
func (p *ResizePolicy) GetMaxConcurrent(replicas int32) int32 {
	value := intstr.FromString(DefaultMaxConcurrentResizes)
	if p != nil && p.MaxConcurrent != nil {
		value = *p.MaxConcurrent
	}

	number, err := intstr.GetScaledValueFromIntOrPercent(&value, int(replicas), false)
	if err != nil {
		return 1
	}

	return int32(min(max(number, 1), math.MaxInt32))
}

// GetDrift returns what happens to resources that another client has set.
func (p *ResizePolicy) GetDrift() ResizeDriftPolicy {
	if p != nil && p.Drift == EnforceResizeDrift {
		return EnforceResizeDrift
	}

	return LeaveResizeDrift
}

func keepUnlessRecreate(policy ResizeFailurePolicy) ResizeFailurePolicy {
	if policy == RecreateResizeFailure {
		return policy
	}

	return KeepResizeFailure
}
