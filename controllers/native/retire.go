// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// retireOthers takes the pods out of service that are not to stay: Kubernetes deletes them when
// the hold has ended, and would lose requests. It reports whether that is done. While a pod that
// stays is only becoming ready, it waits for that. What is needed for longer serves until
// Kubernetes has others.
func (s *scope) retireOthers(ctx context.Context, r *Reconciler) bool {
	target, areRetired := s.Asked.Target, true
	target.CannotDrain = s.Plan.CannotDrain
	spare, becoming := s.spareOthers()
	var moves []inplace.Move
	for i, facts := range s.pods {
		if !s.isOfOther(i) {
			continue
		}
		step, serves := facts.Retire(target, s.Now), s.isAvailable(facts.Pod)
		switch {
		case step == nil, step.State == inplace.Stuck, s.isDrainedTooLong(facts.Pod):
			continue // Kubernetes deletes it as it is
		case step.Action == inplace.MarkNotReady && serves && spare <= 0 && !becoming:
			continue
		}
		areRetired = false
		if step.Action == inplace.MarkNotReady && (!serves || spare > 0) {
			moves = append(moves, inplace.Move{Pod: facts.Pod, Step: *step, Note: fmt.Sprintf("%s %s; %s", step.Action, facts.Pod.Name, step.Message)})
			if serves {
				spare--
			}
		}
		if !step.Until.IsZero() {
			s.Requeue.Within(max(step.Until.Sub(s.Now), time.Millisecond))
		}
	}
	if !areRetired {
		s.Requeue.Within(unfinishedTime)
	}
	s.Carry(ctx, r.executor, moves)
	return areRetired
}

// spareOthers returns how many pods serve that are not needed, and whether one that stays is
// about to serve.
func (s *scope) spareOthers() (spare int, becoming bool) {
	spare = -s.spec.replicas
	for i, facts := range s.pods {
		serves := s.isAvailable(facts.Pod) && !inplace.IsMarkedNotReady(facts.Pod)
		if serves {
			spare++
		}
		since := notReadySince(facts.Pod).Add(time.Duration(s.spec.minReadySeconds) * time.Second)
		becoming = becoming || !serves && !s.isOfOther(i) && !inplace.IsBroken(facts.Pod) && !s.isOverdueSince(since)
	}
	return spare, becoming
}

// isDrainedTooLong reports whether a pod has been out of service for longer than it takes to
// drain and to delete it: neither is waited for any more.
func (s *scope) isDrainedTooLong(pod *corev1.Pod) bool {
	return inplace.IsMarkedNotReady(pod) && s.isOverdueSince(unreadySince(pod).Add(s.Asked.Target.GracePeriod))
}

// unreadySince returns since when a pod that was marked not ready has been so.
func unreadySince(pod *corev1.Pod) time.Time {
	last := time.Time{}
	for _, c := range pod.Status.Conditions {
		if isOurs := c.Type == corev1.PodReady || c.Type == appsv1beta1.InPlaceUpdateReady; isOurs && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// isOverdueSince reports whether something has taken longer than it usually does.
func (s *scope) isOverdueSince(since time.Time) bool {
	return !s.Now.Before(since.Add(unfinishedTime))
}

// dismissOthers has Kubernetes delete the pods that were taken out of service, while the
// Deployment is still held: later, their drain would be ended before they go. It reports whether
// they are about to.
func (w deployment) dismissOthers(ctx context.Context, r *Reconciler, s *scope) (bool, error) {
	if !s.spec.surges {
		return true, nil
	}
	if !s.keeper.isPromoted() && !s.retireOthers(ctx, r) {
		return false, nil
	}
	isOver := true
	for _, other := range s.others {
		serving, dismissed := int32(0), 0
		for _, facts := range s.pods {
			switch {
			case !metav1.IsControlledBy(facts.Pod, other):
			case inplace.IsMarkedNotReady(facts.Pod) && !s.isDrainedTooLong(facts.Pod):
				dismissed++
			default:
				serving++
			}
		}
		if dismissed == 0 {
			continue
		}
		isOver = false
		if ptr.Deref(other.Spec.Replicas, 1) <= serving {
			continue // its controller is about to act
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": other.UID, "resourceVersion": other.ResourceVersion}, "spec": map[string]any{"replicas": serving},
		})
		if err != nil {
			return false, err
		}
		if err := r.client.Patch(ctx, other.reference(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return false, fmt.Errorf("scale ReplicaSet %s/%s: %w", other.Namespace, other.Name, err)
		}
	}
	if !isOver {
		s.Requeue.Within(unfinishedTime)
	}
	return isOver, nil
}
