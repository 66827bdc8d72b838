// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pool is the smallest kind of workload that package engine can drive: pods that are
// alike, and have neither an identity nor claims. It shows what a kind has to bring, and the
// simulation holds it to the same laws as the others.
package pool

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Reconciler reconciles Pools.
type Reconciler struct {
	engine.Core
	random func(length int) string
}

// NewReconciler returns a Reconciler, see [engine.NewCore]. random gives parts of names.
func NewReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, random func(int) string) *Reconciler {
	return &Reconciler{engine.NewCore(Kind, c, live, recorder, clock), random}
}

// Reconcile brings the pods of one Pool one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	shell := &engine.Shell[*Pool, *scope]{
		Core: &r.Core, Report: r.report,
		Begin: func(p *Pool) *scope {
			return &scope{Round: engine.Round{Owner: workload.Owner{Object: p, Kind: Kind}, Now: r.Clock.Now()}, pool: p, set: p.CloneSet()}
		},
		Phases: []engine.Phase[*scope]{r.observe, engine.Common[*scope](r.Release), r.ensureRevisions, r.scale, r.update},
	}
	return shell.Reconcile(ctx, request.NamespacedName, &Pool{})
}

// scope is what one reconciliation knows of a Pool.
type scope struct {
	engine.Round
	pool *Pool
	set  *appsv1beta1.CloneSet
	// members are the pods that count, those that serve first; surplus ones go for good.
	members, surplus []*corev1.Pod
	held             []bool
	counts           engine.Counts
}

func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	isOwn := func(*corev1.Pod) bool { return true }
	if _, err := r.Adopt(ctx, &s.Round, s.set.Spec.Selector, isOwn); err != nil {
		return err
	}
	if err := r.ObservePods(ctx, &s.Round, isOwn); err != nil {
		return err
	}
	for _, pod := range s.Pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case inplace.HasEnded(pod):
			s.surplus = append(s.surplus, pod)
		default:
			s.members = append(s.members, pod)
		}
	}
	slices.SortStableFunc(s.members, func(a, b *corev1.Pod) int {
		return workload.CompareBools(workload.IsHealthy(b, nil, s.set.GetMinReadySeconds(), s.Now), workload.IsHealthy(a, nil, s.set.GetMinReadySeconds(), s.Now))
	})
	stay := min(len(s.members), int(s.set.GetReplicas()))
	s.members, s.surplus = s.members[:stay], slices.Concat(s.surplus, s.members[stay:])
	return nil
}

func (r *Reconciler) ensureRevisions(ctx context.Context, s *scope) error {
	content, err := s.ContentOf(s.set.Spec.Template, nil)
	if err != nil {
		return err
	}
	return r.EnsureRevisions(ctx, &s.Round, content, s.set.Spec.Template.Labels, commonStatus(s.pool))
}

// scale makes the pods that are missing, at the revision that the partition leaves room for, and
// deletes those that are too many.
func (r *Reconciler) scale(ctx context.Context, s *scope) error {
	replicas, partition, turns := int(s.set.GetReplicas()), int(s.set.GetPartition()), make([]workload.Turn, len(s.members))
	if s.Revisions.Update == s.Revisions.Current {
		partition = 0 // there is nothing else to keep pods at
	}
	for i, pod := range s.members {
		turns[i] = workload.TurnOf(pod, s.Revisions.MarkOf(s.Revisions.Update), s.Revisions.MarkOf(s.Revisions.Current), s.Now)
	}
	var atUpdate int
	s.held, atUpdate = workload.HeldByNumber(turns, replicas-len(s.members), replicas-partition)
	var pods []workload.NewPod
	for i := range min(replicas-len(s.members), workload.MaxCreations) {
		revision := map[bool]*history.Revision{true: s.Revisions.Update, false: s.Revisions.Current}[i < atUpdate]
		pod, err := workload.PodFrom(s.Revisions.InPlace(revision), s.Owner, s.pool.Name+"-"+r.random(5))
		if err != nil {
			return err
		}
		inplace.PrepareNew(pod, s.target(), s.Now)
		pods = append(pods, workload.NewPod{Pod: pod, MadeUp: true})
	}
	s.Scaling.Errs = append(s.Scaling.Errs, r.Pods.Create(ctx, s.Owner, pods)...)
	for _, pod := range s.surplus {
		s.Scaling.Add(r.Pods.Remove(ctx, s.Owner, pod, s.target(), s.Now))
	}
	return nil
}

func (s *scope) target() inplace.Target {
	target := workload.TargetOf(s.set.GetInPlaceUpdateStrategy(), s.set.Annotations, int(s.set.GetReplicas()))
	target.Revision, target.Policy, target.CannotResize = s.Revisions.InPlace(s.Revisions.Update), s.set.GetPodUpdatePolicy(), s.CannotResize
	return target
}

// update lets the pods that stay take their next steps, those that do not serve first.
func (r *Reconciler) update(ctx context.Context, s *scope) error {
	replicas := int(s.set.GetReplicas())
	asked := inplace.Workload{
		Target: s.target(), Current: new(s.Revisions.InPlace(s.Revisions.Current)), Replicas: replicas,
		MaxUnavailable: int(s.set.GetMaxUnavailable()), MinReadySeconds: s.set.GetMinReadySeconds(),
		MaxConcurrentResizes: workload.MaxConcurrentResizes(s.set.GetInPlaceUpdateStrategy(), replicas),
		Stopped:              s.isOnDelete() || s.set.IsPaused(), Condemned: s.surplus,
	}
	for i, pod := range slices.Backward(s.members) {
		facts, err := workload.Facts(ctx, r.Client, s.Revisions, pod, s.Now)
		if err != nil {
			return err
		}
		facts.Held = s.held[i]
		asked.Pods = append(asked.Pods, facts)
	}
	s.Decide(ctx, r.Executor, asked)
	s.Carry(ctx, r.Executor, s.Plan.Moves)
	s.counts = engine.Count(s.Plan.Pods)
	if replicas > 0 && !s.set.HasPartition() && int(s.counts.UpdatedReady) == replicas {
		s.Revisions.Current = s.Revisions.Update
	}
	r.TruncateHistory(ctx, &s.Round, s.set.GetRevisionHistoryLimit())
	return nil
}

func (s *scope) isOnDelete() bool {
	return s.set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType
}

func (r *Reconciler) report(ctx context.Context, s *scope, failure error) error {
	return r.PatchStatus(ctx, &s.Round, commonStatus(s.pool), failure, func() {
		status := &s.pool.Status
		if c := s.counts; s.Planned {
			status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.Replicas, c.Ready, c.Available
			status.UpdatedReplicas, status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.Updated, c.UpdatedReady, c.UpdatedAvailable
			status.InPlaceUpdated, status.Recreated = c.InPlace, c.Updated-c.InPlace
		}
		s.SetConditions(s.Conditions(&status.Conditions), s.standing, failure)
	})
}

func commonStatus(p *Pool) engine.Status {
	status := &p.Status
	return engine.Status{
		ObservedGeneration: &status.ObservedGeneration, Resize: &status.Resize, Blockers: &status.Blockers,
		UpdateRevision: &status.UpdateRevision, CurrentRevision: &status.CurrentRevision, CollisionCount: &status.CollisionCount,
	}
}

func (s *scope) standing() engine.Standing {
	standing := engine.Standing{
		Replicas: int(s.set.GetReplicas()), Wanted: int(s.set.GetReplicas()), Existing: len(s.members), Leaving: len(s.surplus),
		Available: int(s.counts.Available), OnDelete: s.isOnDelete(), Paused: s.set.IsPaused(), Revision: s.Revisions.Update.Name(),
	}
	for i, pod := range s.Plan.Pods {
		switch {
		case pod.Updated:
		case s.Asked.Pods[i].Held:
			standing.Kept++
		default:
			standing.Pending++
		}
	}
	return standing
}
