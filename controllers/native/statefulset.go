// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/inplace"
)

// statefulSet is a StatefulSet. Held, it has the strategy OnDelete: pods that are
// deleted come back at the new revision, no other is recreated. Its controller takes
// a pod for updated by the label of its revision.
type statefulSet struct {
	*appsv1.StatefulSet
}

func (w statefulSet) spec() spec {
	replicas := int(ptr.Deref(w.Spec.Replicas, 1))
	return spec{
		template:         &w.Spec.Template,
		replicas:         replicas,
		minReadySeconds:  w.Spec.MinReadySeconds,
		isHeld:           w.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		maxUnavailable:   maxUnavailable(heldValue(w, native.HeldMaxUnavailableAnnotation, "1"), replicas, false),
		progressDeadline: progressDeadlineOf(w.Spec.MinReadySeconds),
		deletesFirst:     true,
		ordered:          w.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
	}
}

func (w statefulSet) observe(ctx context.Context, r *Reconciler, s *scope) error {
	if err := s.readHistory(ctx, r.client); err != nil {
		return err
	}
	w.setTarget(s)
	if s.target == nil {
		return nil
	}
	pods, err := s.readPods(ctx, r.client, w.StatefulSet)
	if err != nil {
		return err
	}
	first := w.firstOrdinal()
	kept := first + w.partition()
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(w.ordinalOf(b), w.ordinalOf(a)) })
	for _, pod := range pods {
		ordinal := w.ordinalOf(pod)
		if ordinal < first || ordinal >= first+s.spec.replicas {
			s.condemned = append(s.condemned, pod)
			continue
		}
		if err := s.addPod(ctx, r, pod, s.revisionByName(inplace.RevisionOf(pod)), ordinal < kept); err != nil {
			return err
		}
	}
	return nil
}

// setTarget says what the pods become, if Kubernetes has a revision for it.
func (w statefulSet) setTarget(s *scope) {
	switch update := s.history.Get(w.Status.UpdateRevision); {
	case s.ahead:
		s.setTargetAhead()
	case !isObserved(w, w.Status.ObservedGeneration): // its status names the revision before
	case update != nil:
		s.setTarget(update.Name(), update.Template.Native())
	}
}

// conclude waits until Kubernetes counts the updated pods: one that it still sees at the
// revision before, it would delete.
func (w statefulSet) conclude(_ context.Context, _ *Reconciler, s *scope) (bool, error) {
	switch {
	case s.ahead:
		return true, nil
	case !isObserved(w, w.Status.ObservedGeneration), int(w.Status.UpdatedReplicas) < s.atTarget():
		return false, nil
	case w.isOvertaken(s):
		return s.isSeen(), nil
	default:
		return true, nil
	}
}

// isOvertaken reports whether pods may have been at the target before this update, and
// left it in one that was never finished: the present revision of a StatefulSet is the
// last one that all its pods had.
func (w statefulSet) isOvertaken(s *scope) bool {
	current := s.history.Get(w.Status.CurrentRevision)
	target := s.history.Get(s.target.Name)
	return s.isReturn(target) && (current == nil || current == target || s.history.HasBetween(current, target))
}

func (w statefulSet) tidy(context.Context, *Reconciler, *scope) error {
	return nil
}

func (w statefulSet) unheld() map[string]any {
	return rollingUpdate(w, map[string]string{
		"partition": native.HeldPartitionAnnotation, "maxUnavailable": native.HeldMaxUnavailableAnnotation,
	})
}

func (w statefulSet) firstOrdinal() int {
	if w.Spec.Ordinals == nil {
		return 0
	}
	return int(w.Spec.Ordinals.Start)
}

// partition returns how many ordinals stay at their revision.
func (w statefulSet) partition() int {
	return max(ptr.To(heldValue(w, native.HeldPartitionAnnotation, "0")).IntValue(), 0)
}

// ordinalOf returns the ordinal of a pod; -1 for one that has none.
func (w statefulSet) ordinalOf(pod *corev1.Pod) int {
	ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, w.Name+"-"))
	if err != nil {
		return -1
	}
	return ordinal
}

// heldValue returns a value that the hold replaced.
func heldValue(w interface{ GetAnnotations() map[string]string }, annotation, byDefault string) intstr.IntOrString {
	value, ok := w.GetAnnotations()[annotation]
	if !ok {
		value = byDefault
	}
	return intstr.Parse(value)
}

// rollingUpdate returns the strategy that the hold replaced: its fields are in the
// annotations.
func rollingUpdate(w interface{ GetAnnotations() map[string]string }, fields map[string]string) map[string]any {
	found := map[string]any{}
	for field, annotation := range fields {
		if value, ok := w.GetAnnotations()[annotation]; ok {
			found[field] = intstr.Parse(value)
		}
	}
	strategy := map[string]any{"type": string(appsv1.RollingUpdateStatefulSetStrategyType)}
	if len(found) > 0 {
		strategy["rollingUpdate"] = found
	}
	return map[string]any{"updateStrategy": strategy}
}
