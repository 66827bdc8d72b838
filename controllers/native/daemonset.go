// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// daemonSet is a DaemonSet. Held, it has the strategy OnDelete: pods of new nodes
// are made at the new revision. Its pods name the revision by its hash alone.
type daemonSet struct {
	*appsv1.DaemonSet
}

func (w daemonSet) spec() spec {
	replicas := int(w.Status.DesiredNumberScheduled)
	return spec{
		template:         &w.Spec.Template,
		replicas:         replicas,
		minReadySeconds:  w.Spec.MinReadySeconds,
		isHeld:           w.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		maxUnavailable:   maxUnavailable(heldValue(w, native.HeldMaxUnavailableAnnotation, "1"), replicas, true),
		deletesFirst:     isZero(heldValue(w, native.HeldMaxSurgeAnnotation, "0")),
		keepsCount:       true,
		progressDeadline: progressDeadlineOf(w.Spec.MinReadySeconds),
	}
}

func (w daemonSet) observe(ctx context.Context, r *Reconciler, s *scope) error {
	if err := s.readHistory(ctx, r.client); err != nil {
		return err
	}
	w.setTarget(s)
	if s.target == nil {
		return nil
	}
	pods, err := s.readPods(ctx, r.client, w.DaemonSet)
	if err != nil {
		return err
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	from := make([]*inplace.Revision, len(pods))
	for i, pod := range pods {
		from[i] = s.revisionByHash(inplace.RevisionOf(pod))
	}
	held := s.keptByCount(pods, from)
	for i, pod := range pods {
		if err := s.addPod(ctx, r, pod, from[i], held[i]); err != nil {
			return err
		}
	}
	return nil
}

// setTarget says what the pods become, if Kubernetes has a revision for it.
func (w daemonSet) setTarget(s *scope) {
	switch update := s.updateRevision(); {
	case s.ahead:
		s.setTargetAhead()
	case !isObserved(w, w.Status.ObservedGeneration): // it has not seen the template yet
	case update != nil:
		s.setTarget(update.Hash(), update.Template.Native())
	}
}

// updateRevision returns the revision that Kubernetes has made of the template; nil if
// there is none. That is the newest one, and may have fields that our types lose of
// the template.
func (s *scope) updateRevision() *history.Revision {
	if newest := s.history.Newest(); newest != nil {
		known, err := podTemplate(newest.Template)
		if err == nil && s.isTemplate(known) {
			return newest
		}
	}
	return s.history.Find(s.template)
}

// isTemplate reports whether a template says what that of the spec says.
func (s *scope) isTemplate(other *corev1.PodTemplateSpec) bool {
	template, err := inplace.NewTemplate(other)
	return err == nil && template.Equal(s.template)
}

// conclude waits until Kubernetes counts the updated pods, as that of a StatefulSet does.
// The status of a DaemonSet does not tell whether the update before was finished.
func (w daemonSet) conclude(_ context.Context, _ *Reconciler, s *scope) (bool, error) {
	switch {
	case s.ahead:
		return true, nil
	case !isObserved(w, w.Status.ObservedGeneration), int(w.Status.UpdatedNumberScheduled) < s.atTarget():
		return false, nil
	case s.isReturn(s.history.GetByHash(s.target.Name)):
		return s.isSeen(), nil
	default:
		return true, nil
	}
}

func (w daemonSet) tidy(context.Context, *Reconciler, *scope) error {
	return nil
}

func (w daemonSet) unheld() map[string]any {
	return rollingUpdate(w, map[string]string{
		"maxUnavailable": native.HeldMaxUnavailableAnnotation, "maxSurge": native.HeldMaxSurgeAnnotation,
	})
}
