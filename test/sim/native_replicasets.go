// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepReplicaSets is one sync of the controller of ReplicaSets, for each.
func (n *nativeWorkload) stepReplicaSets() {
	d := n.object()
	if d == nil {
		return
	}
	for _, rs := range replicaSetsIn(n.shown(), d) {
		if n.late.waits(rs) {
			continue
		}
		pods, expects := n.podsOf(rs), n.late.expects(rs)
		isRefused := false
		for range int(*rs.Spec.Replicas) - len(pods) {
			if isRefused = n.refuses(&rs.Spec.Template); expects || isRefused {
				break
			}
			n.createPod(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &rs.Spec.Template, fmt.Sprintf("%s-%05d", rs.Name, n.nextID()), nil)
		}
		if tooMany := len(pods) - int(*rs.Spec.Replicas); tooMany > 0 && !expects {
			slices.SortStableFunc(pods, n.compareForDeletion)
			for _, pod := range pods[:tooMany] {
				n.deletePod(rs, pod, "ReplicaSet "+rs.Name+" is to have fewer")
			}
		}
		pods = n.podsOf(rs)
		status := appsv1.ReplicaSetStatus{Replicas: int32(len(pods)), ObservedGeneration: rs.Generation} //nolint:gosec // small
		for _, pod := range pods {
			if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
				status.ReadyReplicas++
			}
			if n.isAvailableFor(pod, rs.Spec.MinReadySeconds) {
				status.AvailableReplicas++
			}
		}
		if isRefused {
			status.Conditions = n.failureOf(rs)
		}
		mutateStatus(n.world.server, rs.Name, func(rs *appsv1.ReplicaSet) { rs.Status = status })
	}
}

// refusePods lets admission refuse the pods of one template, or of none any more.
func (n *nativeWorkload) refusePods() {
	if !n.world.settings.refusesPods {
		return
	}
	clear(n.refused)
	if r := pick(n.world.choices, revisions); n.world.choices.oneIn(3) {
		n.world.say("admission: accepts pods again")
	} else {
		n.world.say("admission: refuses pods of revision %s", r.name)
		n.refuse(r.name)
	}
}

// refuse lets admission refuse the pods of a revision from now on.
func (n *nativeWorkload) refuse(name string) { n.refused[name] = n.world.clock.Now() }

// isRefused reports whether admission refuses the pods of a revision.
func (n *nativeWorkload) isRefused(r *revision) bool {
	_, is := n.refused[r.name]
	return is
}

// admitPod refuses a pod as refuses does.
func (n *nativeWorkload) admitPod(pod *corev1.Pod) error {
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(pod.Labels), Annotations: pod.Annotations}, Spec: pod.Spec}
	for _, ofWorkload := range []string{
		appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel,
	} {
		delete(template.Labels, ofWorkload)
	}
	if n.refuses(template) {
		return apierrors.NewForbidden(plurals["Pod"], pod.Name, errors.New("no PriorityClass with name golden was found"))
	}
	return nil
}

// refuses reports whether admission refuses the pods of a template: it takes more than a
// quota has, or names what is not there.
func (n *nativeWorkload) refuses(template *corev1.PodTemplateSpec) bool {
	r := n.revisionIn(template)
	return r != nil && n.isRefused(r)
}

// failureOf returns the condition of a ReplicaSet whose pods are refused.
func (n *nativeWorkload) failureOf(rs *appsv1.ReplicaSet) []appsv1.ReplicaSetCondition {
	if len(rs.Status.Conditions) > 0 {
		return rs.Status.Conditions
	}
	n.say("cannot create pods of %s: they are refused", rs.Name)
	return []appsv1.ReplicaSetCondition{{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: compute",
		LastTransitionTime: metav1.NewTime(n.world.clock.Now()),
	}}
}

// compareForDeletion orders pods by how well a ReplicaSet can do without them.
func (n *nativeWorkload) compareForDeletion(a, b *corev1.Pod) int {
	rank := func(is bool) int { return map[bool]int{true: 1}[is] }
	return cmp.Or(
		cmp.Compare(rank(a.Spec.NodeName != ""), rank(b.Spec.NodeName != "")),
		cmp.Compare(rank(conditionIs(a, corev1.PodReady, corev1.ConditionTrue)), rank(conditionIs(b, corev1.PodReady, corev1.ConditionTrue))),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// isComplete reports whether only the pods of the template are left, and serve.
func (s *deploymentSync) isComplete() bool {
	wanted := *s.d.Spec.Replicas
	total := sum(s.all(), func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas })
	return s.newRS.Status.Replicas == wanted && total == wanted && s.newRS.Status.AvailableReplicas == wanted
}

// cleanUp deletes the oldest revisions that the history has no room for.
func (s *deploymentSync) cleanUp() {
	sorted := slices.SortedStableFunc(slices.Values(s.old), func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionNumber(a), revisionNumber(b)) })
	for _, rs := range sorted[:max(len(sorted)-int(*s.d.Spec.RevisionHistoryLimit), 0)] {
		if rs.Status.Replicas == 0 && *rs.Spec.Replicas == 0 && rs.Generation <= rs.Status.ObservedGeneration && !s.failed {
			s.n.say("deletes ReplicaSet %s", rs.Name)
			s.n.world.server.remove(objectKey{"ReplicaSet", rs.Name})
		}
	}
}
