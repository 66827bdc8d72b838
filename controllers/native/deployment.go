// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/inplace"
)

// deployment is a Deployment. Held, it has one pod of the new template beside the others,
// see surge.go, or it is paused: then its ReplicaSets scale, and none is made. Its controller
// takes the pods of a ReplicaSet for updated when the template of that is equal to its own;
// so that is written last, see conclude.
//
// What its pods were updated to is kept in ControllerRevisions of the Deployment. Pods
// name theirs by the hash alone: a label is shorter than a name may be.
// ReplicaSets would not do: the history limit of the Deployment may be zero, and an
// update may be overtaken before its template is in any.
type deployment struct {
	*appsv1.Deployment
}

// defaultMaxUnavailable is maxUnavailable of a Deployment that does not say it.
const defaultMaxUnavailable = "25%"

func (w deployment) spec() spec {
	replicas, wished := int(ptr.Deref(w.Spec.Replicas, 1)), w.wished()
	s := spec{
		template:        &w.Spec.Template,
		replicas:        replicas,
		minReadySeconds: wished.Spec.MinReadySeconds,
		isHeld:          w.Spec.Paused || w.surges(),
		surges:          w.surges(),
		isPaused:        w.Spec.Paused && w.surges(),
		deletesFirst:    mayMiss(wished) > 0,
		keepsCount:      true,
	}
	if w.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		s.recreates = "spec.strategy.type is Recreate"
	}
	if s.surges {
		s.maxUnavailable = mayMiss(wished)
	} else {
		s.maxUnavailable = maxUnavailable(maxUnavailableOf(w.Deployment), replicas, false)
	}
	if deadline := ptr.Deref(wished.Spec.ProgressDeadlineSeconds, math.MaxInt32); deadline != math.MaxInt32 {
		s.progressDeadline = time.Duration(deadline) * time.Second
	}
	return s
}

// maxUnavailableOf returns maxUnavailable of a Deployment, which it may not say.
func maxUnavailableOf(d *appsv1.Deployment) intstr.IntOrString {
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return *rolling.MaxUnavailable
	}
	return intstr.FromString(defaultMaxUnavailable)
}

// mayMiss returns how many pods of a Deployment may be missing in a rollout of Kubernetes:
// maxUnavailable, of which a percentage is rounded down; 1 if that is 0 and maxSurge, too
// (ResolveFenceposts in its controller). With the strategy Recreate, all may.
func mayMiss(d *appsv1.Deployment) int {
	replicas := int(ptr.Deref(d.Spec.Replicas, 1))
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return replicas
	}
	unavailable, surge := maxUnavailableOf(d), intstr.FromString(defaultMaxUnavailable)
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
		surge = ptr.Deref(rolling.MaxSurge, surge)
	}
	missing, err := intstr.GetScaledValueFromIntOrPercent(&unavailable, replicas, false)
	if err != nil {
		return 0 // the API server accepts no such value
	}
	if more, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true); err == nil && more == 0 {
		missing = max(missing, 1)
	}
	return missing
}

func (w deployment) observe(ctx context.Context, r *Reconciler, s *scope) error {
	live, err := w.observeReplicaSets(ctx, r, s)
	if err != nil {
		return err
	}
	if s.keeper == nil {
		s.setTarget("", s.template.Native())
		return nil
	}
	if err := w.markKeeper(ctx, r, s); err != nil {
		return err
	}
	if err := w.countAvailable(ctx, r, live); err != nil {
		return err
	}
	if err := s.ensureRevisions(ctx, r); err != nil {
		return err
	}
	if err := s.addKeeperPods(ctx, r); err != nil {
		return err
	}
	for _, other := range live {
		if other == s.keeper {
			continue
		}
		if s.others = append(s.others, other); s.spec.surges && other.isOf(s.spec.template) {
			s.surge = other
		}
		if err := s.addOtherPods(ctx, r, other); err != nil {
			return err
		}
	}
	return nil
}

// observeReplicaSets reads those that are live, and which of them is the keeper.
func (w deployment) observeReplicaSets(ctx context.Context, r *Reconciler, s *scope) ([]*replicaSet, error) {
	list := &appsv1.ReplicaSetList{}
	if err := podcache.ByOwner(ctx, r.client, w.Deployment, list); err != nil {
		return nil, err
	}
	s.lastNumber = lastNumber(list.Items)
	numbers := countNumbers(list.Items)
	if err := readPromoted(ctx, r.live, list.Items); err != nil {
		return nil, err
	}
	live, err := liveReplicaSets(list.Items)
	s.keeper = chooseKeeper(live, s.spec.template, s.spec.surges)
	s.isNumberTwice = s.keeper != nil && numbers[s.keeper.Annotations[revisionAnnotation]] > 1
	return live, err
}

// ensureRevisions keeps what the pods were made from, and what they become. What the
// keeper was promoted to is finished first, also when the user wants something else
// by now.
func (s *scope) ensureRevisions(ctx context.Context, r *Reconciler) error {
	if err := s.readHistory(ctx, r.client); err != nil {
		return err
	}
	goal := s.template
	if s.keeper.isPromoted() {
		goal = s.keeper.template
	}
	owner := history.Owner{Object: s.object, Kind: s.Owner.Kind, Labels: s.spec.template.Labels}
	keeper := history.NewKeeper(r.client)
	if s.history.Find(s.keeper.template) == nil {
		if _, _, err := keeper.Ensure(ctx, owner, s.history, history.Content{Template: s.keeper.template}); err != nil {
			return err
		}
	}
	update, _, err := keeper.Ensure(ctx, owner, s.history, history.Content{Template: goal})
	if err != nil {
		return err
	}
	s.setTarget(update.Hash(), update.Template.Native())
	return nil
}

// addKeeperPods adds the pods that are updated.
func (s *scope) addKeeperPods(ctx context.Context, r *Reconciler) error {
	pods, err := s.readPods(ctx, r.client, s.keeper)
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	from := make([]*inplace.Revision, len(pods))
	for i, pod := range pods {
		if from[i] = s.revisionByHash(inplace.RevisionOf(pod)); inplace.RevisionOf(pod) == "" {
			from[i] = s.madeByKeeper()
		}
	}
	kept := s.keptByCount(pods, from)
	for i, pod := range pods {
		if err := s.addPod(ctx, r, pod, from[i], kept[i]); err != nil {
			return err
		}
	}
	return nil
}

// madeByKeeper returns what a pod was made from that was never updated in place:
// the template of its ReplicaSet. While that was promoted a moment ago, it may have
// been the one before. Both can be said of it then, for what the pod already is, is
// not changed again.
func (s *scope) madeByKeeper() *inplace.Revision {
	if before := s.revisionByName(s.keeper.previous().revision); before != nil {
		return before
	}
	return s.known("ReplicaSet "+s.keeper.Name, s.keeper.template)
}

// addOtherPods adds the pods of a ReplicaSet that is not the one to stay. They count,
// and Kubernetes replaces them when the Deployment is released.
func (s *scope) addOtherPods(ctx context.Context, r *Reconciler, other *replicaSet) error {
	pods, err := s.readPods(ctx, r.client, other)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		from := s.revisionByHash(inplace.RevisionOf(pod))
		if from == nil {
			from = s.known("ReplicaSet "+other.Name, other.template)
		}
		if err := s.addPod(ctx, r, pod, from, true); err != nil {
			return err
		}
	}
	return nil
}

func (w deployment) unheld() map[string]any {
	if !w.surges() {
		return map[string]any{"paused": nil}
	}
	wished := w.wished().Spec
	fields := map[string]any{"minReadySeconds": wished.MinReadySeconds, "progressDeadlineSeconds": wished.ProgressDeadlineSeconds}
	if w.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		fields["strategy"] = map[string]any{"rollingUpdate": wished.Strategy.RollingUpdate}
	}
	return fields
}
