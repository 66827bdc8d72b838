// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// scope is what one reconciliation knows of a CloneSet. Each part is read once,
// by the phase that needs it first.
type scope struct {
	engine.Round
	set *appsv1beta1.CloneSet

	// members are the pods that count as replicas, in the order of updates.
	members []*member
	// outgoing are pods that do not count and are to be deleted: they have ended,
	// or a hook holds them that the spec leaves out. leaving are those that are
	// being deleted.
	outgoing, leaving []*corev1.Pod
	// excluded is how many of the outgoing a hook holds.
	excluded int32

	// claims are those of the members, and claimSteps what those need that are to
	// follow their templates, by the names of the pods. awaited are the IDs of pods
	// that are kept away while their volumes grow, and away names them.
	claims     *workload.Claims
	claimSteps map[string]volumes.Claims
	awaited    sets.Set[string]
	away       []inplace.Blocker
	// scaled is what was decided on the number of pods.
	scaled scalePlan

	// counts and claimCounts are what came of the plan.
	counts      counts
	claimCounts workload.ClaimCounts
}

// member is a pod of the set that counts as a replica.
type member struct {
	*corev1.Pod
	facts inplace.PodFacts
	// turn is how early the partition lets it be updated.
	turn workload.Turn
	// asked: a user asks for its deletion. preparing: it is about to be deleted,
	// and a hook holds it.
	asked, preparing bool
	// available: it serves, and nothing is being changed in it. broken: it does
	// not, and waiting does not help.
	serves, available, broken bool
	// yields: it is not available for what is to be done to it next, and goes on serving until
	// that may be done.
	yields bool
	// surges: it is to be taken out of service, and a pod beyond replicas may make
	// up for it. returns: that is for a change in place.
	surges, returns bool
}

func ownerOf(set *appsv1beta1.CloneSet) workload.Owner {
	return workload.Owner{Object: set, Kind: kind, OwnsClaims: true}
}

func newScope(set *appsv1beta1.CloneSet, now time.Time) *scope {
	return &scope{Round: engine.Round{Owner: ownerOf(set), Now: now}, set: set}
}

// adopt takes over pods and revisions without a controller that have the labels of
// those of the set, whatever the names of the pods are.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	// The set would delete a pod that has ended, and its logs with it. So it adopts only
	// those that it has made itself.
	_, err := r.Adopt(ctx, &s.Round, s.set.Spec.Selector, func(pod *corev1.Pod) bool {
		return isPodName(s.set.Name, pod.Name) || !inplace.HasEnded(pod)
	})
	return err
}

// observePods reads the pods that the set controls.
func (r *Reconciler) observePods(ctx context.Context, s *scope) error {
	if err := r.ObservePods(ctx, &s.Round, func(*corev1.Pod) bool { return true }); err != nil {
		return err
	}
	for _, pod := range s.Pods {
		isPreparing := pod.Labels[appsv1beta1.LifecycleStateKey] == string(appsv1beta1.LifecycleStatePreparingDelete)
		switch {
		case pod.DeletionTimestamp != nil:
			s.leaving = append(s.leaving, pod)
		case inplace.HasEnded(pod):
			s.outgoing = append(s.outgoing, pod)
		case isPreparing && s.set.ExcludesPreparingDelete():
			s.outgoing = append(s.outgoing, pod)
			s.excluded++
		default:
			s.members = append(s.members, &member{Pod: pod, preparing: isPreparing, broken: inplace.IsBroken(pod)})
		}
	}
	s.members = inUpdateOrder(s.members, s.set.GetPriorityStrategy(), s.set.GetScatterStrategy())
	return nil
}

// ensureRevisions reads the history and makes sure that the present template has
// its revision in it, with the claim templates. Where claims do not follow them, a change of
// those alone makes no revision.
func (r *Reconciler) ensureRevisions(ctx context.Context, s *scope) error {
	content, err := s.ContentOf(s.set.Spec.Template, s.set.Spec.VolumeClaimTemplates)
	if err != nil {
		return err
	}
	follows := s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates()
	content.IgnoresClaims, content.SpeaksOfClaims = !follows, follows && len(content.Claims) > 0
	if err := r.EnsureRevisions(ctx, &s.Round, content, s.set.Spec.Template.Labels, commonStatus(s.set)); err != nil {
		return err
	}
	for _, m := range s.members {
		m.turn = workload.TurnOf(m.Pod, s.Revisions.MarkOf(s.Revisions.Update), s.Revisions.MarkOf(s.Revisions.Current), s.Now)
	}
	return nil
}

func (r *Reconciler) truncateHistory(ctx context.Context, s *scope) error {
	r.TruncateHistory(ctx, &s.Round, s.set.GetRevisionHistoryLimit())
	return nil
}

// isStopped reports whether no pod may start its update.
func (s *scope) isStopped() bool {
	return s.set.IsPaused() || s.set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType
}

// partition returns how many pods stay at the current revision. When the update
// is back at that, there is nothing else to keep pods at.
func (s *scope) partition() int {
	if s.Revisions.Update.Name() == s.Revisions.Current.Name() {
		return 0
	}
	return int(s.set.GetPartition())
}

// namedForDeletion returns the names of the pods that the spec names.
func (s *scope) namedForDeletion() sets.Set[string] {
	return sets.New(s.set.Spec.ScaleStrategy.PodsToDelete...)
}
