// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/inplace"
)

// A hold that ends before its pods are updated gives them to Kubernetes, which deletes some
// before it has made others. So the API server is asked about a new pod before: while it would
// accept none, the hold stays, and all that serves goes on serving.

// staysHeld reports whether a hold that is about to end stays, and notes why.
func (r *Reconciler) staysHeld(ctx context.Context, s *scope) bool {
	s.kept = nil
	if s.ending == nil || s.target == nil || !s.deletesFirst() {
		return false
	}
	pod := s.anyToGo()
	if pod == nil {
		return false
	}
	s.kept = r.executor.RefusalToRecreate(ctx, s.object, s.workloadFacts(), pod, s.Now)
	if s.kept == nil {
		return false
	}
	s.ending = nil
	s.Requeue.Within(max(s.kept.Until.Sub(s.Now), time.Millisecond))
	return true
}

// deletesFirst reports whether Kubernetes would delete pods before it has made one of the
// template. The hold of a Deployment has it make one: then the API server accepts them.
func (s *scope) deletesFirst() bool {
	return s.spec.deletesFirst && len(s.newPods()) == 0
}

// anyToGo returns a pod that Kubernetes may delete when the hold ends; nil if there is none.
func (s *scope) anyToGo() *corev1.Pod {
	for i, facts := range s.pods {
		isKept := s.kind == StatefulSet && facts.Held
		isThere := s.kind != Deployment && inplace.RevisionOf(facts.Pod) == s.target.Name
		if !isKept && !isThere && !s.isOfOther(i) && facts.Pod.DeletionTimestamp == nil {
			return facts.Pod
		}
	}
	return nil
}

// keep plans for a hold that stays since the API server would accept no new pods: those that
// would be recreated stay as they are. What is to be recreated as the spec says does not begin
// to change in place, either.
func (r *Reconciler) keep(ctx context.Context, s *scope) {
	asked := s.Asked
	for i, pod := range s.Plan.Pods {
		if pod.Step.Deletes() {
			asked.Pods[i].Irreplaceable = s.kept
		}
	}
	asked.Stopped = asked.Stopped || s.spec.recreates != ""
	s.Decide(ctx, r.executor, asked)
	s.nameNoRoom()
	s.nameNoNewPod()
}

// nameKept has one of the pods say why the hold stays, if none does.
func (s *scope) nameKept() {
	if s.kept == nil || !s.Planned || slices.ContainsFunc(s.Plan.Blockers, func(b inplace.Blocker) bool { return b.Reason == s.kept.Reason }) {
		return
	}
	state := inplace.Waiting
	if s.kept.Denied {
		state = inplace.Stuck
	}
	s.Plan = s.Plan.With(inplace.Blocker{Pod: s.anyToGo(), State: state, Reason: s.kept.Reason, Message: s.kept.Message, Denied: s.kept.Denied})
}
