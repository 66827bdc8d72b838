// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// scope is what one reconciliation knows of a StatefulSet. Each part is read
// once, by the phase that needs it first.
type scope struct {
	engine.Round
	set *appsv1beta1.StatefulSet

	// replicas is how many pods are wanted, and wanted their ordinals. ordinals are those
	// that are looked at, ascending: all that have a pod, and so many others as pods can
	// be created now. There are few of them, however many replicas the user asks for.
	replicas int
	wanted   appsv1beta1.OrdinalSet
	ordinals []int
	// members are the pods at wanted ordinals; condemned are the others, which
	// are to be deleted. Both are sorted by ordinal, the lowest first. lingering are those
	// of condemned of which one waits for the other to be healthy.
	members, condemned, lingering []*member
	// withheld is how many pods are missing that scaleStrategy.maxUnavailable does not allow
	// yet.
	withheld int
	// claims are those of the wanted pods, and claimSteps what those need that are to
	// follow their templates, by the names of the pods. away are the pods that are kept
	// away while their volumes grow, or their claims are recreated; waiting is what
	// else is to be said of claims. cleared are the names of claims that may be made if they
	// do not exist, and failed, by template, those that could not be recreated. kept is what
	// is kept of those that were.
	claims        *workload.Claims
	claimSteps    map[string]volumes.Claims
	away, waiting []inplace.Blocker
	cleared       sets.Set[string]
	failed        map[string][]string
	kept          []recreate.Kept
	// gated holds the names of pods that must neither be created nor deleted
	// now, see ensureClaimOwners and awaitVolumes.
	gated sets.Set[string]

	// held are the wanted ordinals that the partition keeps at the current
	// revision, whether they have a pod or not.
	held sets.Set[int]
	// priorities gives pods with the labels their priority; nil until it is needed.
	priorities func(labels.Set) inplace.Priority

	// counts and claimCounts are what came of the plan.
	counts      counts
	claimCounts workload.ClaimCounts
}

// member is a pod of the set.
type member struct {
	*corev1.Pod
	ordinal int
	// healthy: the pod runs, has been ready for minReadySeconds, and stays. yields: it would
	// be healthy, had its hook not given it up.
	healthy, yields bool
}

func newMember(pod *corev1.Pod, ordinal int, lifecycle *appsv1beta1.Lifecycle, minReadySeconds int32, now time.Time) *member {
	return &member{
		Pod: pod, ordinal: ordinal,
		healthy: workload.IsHealthy(pod, lifecycle, minReadySeconds, now), yields: workload.Yields(pod, lifecycle, minReadySeconds, now),
	}
}

// isHeldForDeletion reports whether the pod was given to the hook preDelete.
func (m *member) isHeldForDeletion() bool {
	return m.Labels[appsv1beta1.LifecycleStateKey] == string(appsv1beta1.LifecycleStatePreparingDelete)
}

func ownerOf(set *appsv1beta1.StatefulSet) workload.Owner {
	return workload.Owner{Object: set, Kind: kind}
}

func newScope(set *appsv1beta1.StatefulSet, now time.Time) *scope {
	return &scope{
		Round:    engine.Round{Owner: ownerOf(set), Now: now},
		set:      set,
		replicas: int(set.GetReplicas()),
		wanted:   set.GetWantedOrdinals(),
		gated:    sets.New[string](),
		cleared:  sets.New[string](),
		failed:   map[string][]string{},
	}
}

// observePods reads the pods that the set controls.
func (r *Reconciler) observePods(ctx context.Context, s *scope) error {
	if err := r.ObservePods(ctx, &s.Round, s.isOwn); err != nil {
		return err
	}
	for _, pod := range s.Pods {
		ordinal, _ := ordinalOf(s.set.Name, pod.Name)
		m := newMember(pod, ordinal, s.set.GetLifecycle(), s.set.GetMinReadySeconds(), s.Now)
		if s.wanted.Has(ordinal) {
			s.members = append(s.members, m)
		} else {
			s.condemned = append(s.condemned, m)
			// Nothing but time makes it healthy, which others may wait for.
			if at := workload.HealthyAt(pod, s.set.GetMinReadySeconds()); at.After(s.Now) {
				s.Requeue.Within(at.Sub(s.Now))
			}
		}
	}
	byOrdinal := func(a, b *member) int { return a.ordinal - b.ordinal }
	slices.SortFunc(s.members, byOrdinal)
	slices.SortFunc(s.condemned, byOrdinal)
	s.ordinals = s.ordinalsInView()
	return nil
}

// ordinalsInView returns the wanted ordinals that have a pod, and the lowest of those
// that have none. Of the first ones, members can have no more than there are.
func (s *scope) ordinalsInView() []int {
	ordinals := s.wanted.First(len(s.members) + workload.MaxCreations).List()
	last := -1
	if len(ordinals) > 0 {
		last = ordinals[len(ordinals)-1]
	}
	for _, m := range s.members {
		if m.ordinal > last {
			ordinals = append(ordinals, m.ordinal)
		}
	}
	return ordinals
}

// ensureRevisions reads the history and makes sure that the present template has
// its revision in it.
func (r *Reconciler) ensureRevisions(ctx context.Context, s *scope) error {
	content, err := s.ContentOf(s.set.Spec.Template, s.set.Spec.VolumeClaimTemplates)
	if err == nil {
		err = r.EnsureRevisions(ctx, &s.Round, content, s.set.Spec.Template.Labels, commonStatus(s.set))
	}
	if err != nil {
		return err
	}
	s.held = s.heldOrdinals()
	return nil
}

func (r *Reconciler) truncateHistory(ctx context.Context, s *scope) error {
	r.TruncateHistory(ctx, &s.Round, s.set.GetRevisionHistoryLimit())
	return nil
}

// revisionFor returns the revision at which a pod is created: one that the
// partition keeps comes back at the current revision, also while an update runs.
func (s *scope) revisionFor(ordinal int) *history.Revision {
	if s.held.Has(ordinal) {
		return s.Revisions.Current
	}
	return s.Revisions.Update
}
