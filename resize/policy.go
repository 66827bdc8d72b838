// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"fmt"
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Policy says what a workload wants when its pods cannot be resized at once. The
// zero Policy waits, and keeps pods as they are.
type Policy struct {
	// OnDeferred, OnInfeasible and OnError are as in the API; empty is the default
	// there.
	OnDeferred   appsv1beta1.ResizeDeferredPolicy
	OnInfeasible appsv1beta1.ResizeFailurePolicy
	OnError      appsv1beta1.ResizeFailurePolicy
	// DeferredTimeout is how long a pod waits for room before it counts as
	// infeasible; zero is for ever.
	DeferredTimeout time.Duration
	// Enforce sets back what others changed.
	Enforce bool
}

// Verdict is what becomes of a pod.
type Verdict int

const (
	// Wait lets the pod be: its resize is going on, or may go on by itself.
	Wait Verdict = iota
	// Keep leaves the pod as it is; a user has to decide.
	Keep
	// Recreate evicts the pod; it is made again with the new sizes.
	Recreate
)

// Judge says what becomes of a pod whose resize has come so far. The Progress that
// it returns says so in words, with the moment at which that changes.
func (p Policy) Judge(progress Progress, now time.Time) (Verdict, Progress) {
	switch progress.State {
	case Deferred:
		return p.judgeDeferred(progress, now)
	case Infeasible:
		return onFailure(p.OnInfeasible), progress
	case Failed:
		// The kubelet tries again, and a container that is restarted has its size.
		if end := progress.Since.Add(settleTime); now.Before(end) {
			progress.Recheck = end
			return Wait, progress
		}
		return onFailure(p.OnError), progress
	case Done, NotObserved, InProgress:
		return Wait, progress
	default:
		return Wait, progress
	}
}

func (p Policy) judgeDeferred(progress Progress, now time.Time) (Verdict, Progress) {
	if p.OnDeferred == appsv1beta1.RecreateResizeDeferred {
		return Recreate, progress
	}
	if p.DeferredTimeout <= 0 || progress.Since.IsZero() {
		return Wait, progress
	}
	end := progress.Since.Add(p.DeferredTimeout)
	if now.Before(end) {
		progress.Recheck = end
		return Wait, progress
	}
	progress.State = Infeasible
	progress.Message = fmt.Sprintf("no room for longer than %s: %s", p.DeferredTimeout, progress.Message)
	return onFailure(p.OnInfeasible), progress
}

// OnRefusal says what becomes of a pod of which the API server says that the node
// can never hold it, or that refuses its new sizes for another reason.
func (p Policy) OnRefusal(infeasible bool) Verdict {
	if infeasible {
		return onFailure(p.OnInfeasible)
	}
	return onFailure(p.OnError)
}

// Keeping returns the policy without what recreates pods.
func (p Policy) Keeping() Policy {
	p.OnDeferred, p.OnInfeasible, p.OnError = "", "", ""
	return p
}

func onFailure(policy appsv1beta1.ResizeFailurePolicy) Verdict {
	if policy == appsv1beta1.RecreateResizeFailure {
		return Recreate
	}
	return Keep
}
