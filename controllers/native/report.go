// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// reportPeriod is how often a status is written that differs in no more than numbers.
// For a Deployment, each is a new generation.
const reportPeriod = 5 * time.Second

// report says in the workload's annotation how far its update is, if that differs
// from what it says already. A workload that was released says nothing; one whose release
// is refused says that. Where the answer was lost, it may have been released.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	if s.ending != nil && !executor.IsRefusal(s.failure) {
		r.metrics.Report(client.ObjectKeyFromObject(s.object), s.rolloutAtEnd(), s.Now)
		return nil
	}
	if s.failure == nil && (s.isConcluding || !s.Planned) {
		return nil
	}
	before := statusOf(s.object)
	status := s.status(before)
	r.metrics.Report(client.ObjectKeyFromObject(s.object), s.rollout(status), s.Now)
	if apiequality.Semantic.DeepEqual(before, status) {
		return nil
	}
	left := before.Time.Add(reportPeriod).Sub(s.Now)
	if before.Revision == status.Revision && before.State == status.State && left > 0 {
		s.Requeue.Within(left)
		return nil
	}
	status.Time = metav1.NewTime(s.Now).Rfc3339Copy()
	after, err := json.Marshal(status)
	if err != nil {
		return err
	}
	err = r.patchMetadata(ctx, s, map[string]any{"annotations": map[string]any{native.StatusAnnotation: string(after)}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("report on %s: %w", s.Owner, err)
	}
	r.tell(s, before, status)
	return nil
}

// withdraw takes the report off, and what only a ReplicaSet may have. The controller of
// Deployments copies annotations to the ReplicaSet that it takes for the present one,
// and kubectl rollout undo brings them back from there.
func (r *Reconciler) withdraw(ctx context.Context, s *scope) error {
	patch := map[string]any{}
	keys := []string{native.StatusAnnotation, native.PreviousRevisionAnnotation}
	if s.kind == Deployment && s.isReleased() {
		keys = append(keys, ofKeeper...)
	}
	for _, key := range keys {
		if _, ok := s.object.GetAnnotations()[key]; ok {
			patch[key] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return r.patchMetadata(ctx, s, map[string]any{"annotations": patch})
}

// tell records events for what was not reported before.
func (r *Reconciler) tell(s *scope, before, after native.Status) {
	workloads.ReportStuck(r.recorder, s.object, s.Plan, before.Blockers, after.Blockers)
	// That there was no progress is told once, whatever the pods wait for.
	if before.State == after.State && (before.Message == after.Message || after.State == native.ProgressDeadlineExceeded) {
		return
	}
	switch after.State {
	case native.InvalidOptions:
		r.recorder.Eventf(s.object, nil, corev1.EventTypeWarning, reasonInvalidOptions, workloads.ActionUpdate, "%s", executor.Shorten(after.Message))
	case native.ProgressDeadlineExceeded:
		r.recorder.Eventf(s.object, nil, corev1.EventTypeWarning, reasonDeadline, workloads.ActionUpdate, "%s", executor.Shorten(after.Message))
	case native.Stalled:
		if s.failure != nil {
			r.recorder.Eventf(s.object, nil, corev1.EventTypeWarning, reasonStalled, workloads.ActionUpdate, "%s", executor.Shorten(after.Message))
		}
	case native.Updating, native.Paused, native.PartitionReached:
	}
}

// statusOf returns what was reported last; the zero Status if nothing was, or it
// cannot be read.
func statusOf(obj client.Object) native.Status {
	status := native.Status{}
	if err := json.Unmarshal([]byte(obj.GetAnnotations()[native.StatusAnnotation]), &status); err != nil {
		return native.Status{}
	}
	return status
}

// status returns what is to be reported.
func (s *scope) status(before native.Status) native.Status {
	if !s.Planned {
		before.State, before.Message = native.Stalled, workloads.Summary([]error{s.failure})
		return before
	}
	status := native.Status{Revision: s.target.Name, Replicas: int32(s.spec.replicas)} //nolint:gosec // from an int32
	for i, pod := range s.Plan.Pods {
		if pod.Available {
			status.Available++
		}
		if pod.Updated && !s.isOfOther(i) {
			status.Updated++
		}
	}
	if before.Revision != status.Revision {
		before = native.Status{} // of another update; kubectl rollout undo brings back annotations, too
	}
	status.Time = before.Time
	status.Blockers = workloads.Blockers(s.Plan, s.Result.Failed, before.Blockers, s.Now)
	status.ProgressTime = before.ProgressTime
	if isAtRest(before.State) || status.Updated > before.Updated || status.Available > before.Available || before.ProgressTime.IsZero() {
		status.ProgressTime = metav1.NewTime(s.Now).Rfc3339Copy()
	}
	status.State, status.Message = s.state(status)
	return status
}

// isAtRest reports whether no progress was to be expected of an update.
func isAtRest(state native.State) bool {
	return state == native.Paused || state == native.PartitionReached || state == native.InvalidOptions
}

// isOfOther reports whether the i-th pod is none of those that are updated.
func (s *scope) isOfOther(i int) bool {
	return s.keeper != nil && !metav1.IsControlledBy(s.pods[i].Pod, s.keeper)
}

// state says in a word and a sentence where the update is.
func (s *scope) state(status native.Status) (native.State, string) {
	progress := fmt.Sprintf("%d of %d pods are updated", status.Updated, status.Replicas)
	stall := workloads.FindStall(s.Plan, s.Result.Errors())
	switch {
	case s.failure != nil:
		return native.Stalled, workloads.Summary([]error{s.failure})
	case s.invalid != nil:
		return native.InvalidOptions, s.invalid.Error()
	case stall.Stalled:
		return native.Stalled, stall.Message
	case s.spec.isPaused:
		return native.Paused, progress + "; spec.paused keeps the others from starting"
	case s.options.paused:
		return native.Paused, progress + "; annotation " + native.PausedAnnotation + " keeps the others from starting"
	case s.isOverdue(status):
		return native.ProgressDeadlineExceeded, fmt.Sprintf("%s, and there was no progress for %s", progress, s.deadline()) + workloads.FirstBlocker(s.Plan)
	case s.isPartitionReached(int(status.Updated)):
		kept := "the others"
		if s.keeps() == 0 {
			kept = "those that come"
		}
		return native.PartitionReached, fmt.Sprintf("%s; annotation %s keeps %s%s", progress, native.PartitionAnnotation, kept, s.besides())
	case s.Asked.WaitsFor != "" && s.hasWork():
		return native.Updating, progress + "; " + s.Asked.WaitsFor
	default:
		return native.Updating, progress + workloads.FirstBlocker(s.Plan)
	}
}

// staying returns how many pods there are that stay.
func (s *scope) staying() int {
	count := 0
	for i := range s.Plan.Pods {
		if !s.isOfOther(i) {
			count++
		}
	}
	return count
}

// hasWork reports whether a pod is on its way.
func (s *scope) hasWork() bool {
	for i, pod := range s.Plan.Pods {
		if !s.pods[i].Held && (!pod.Updated || pod.Step.State != inplace.Settled) {
			return true
		}
	}
	return false
}

// isOverdue reports whether there was no progress for too long. If that is still to
// come, it asks for another look then.
func (s *scope) isOverdue(status native.Status) bool {
	if s.deadline() == 0 || s.isPartitionReached(int(status.Updated)) {
		return false
	}
	left := status.ProgressTime.Add(s.deadline()).Sub(s.Now)
	if left > 0 {
		s.Requeue.Within(left)
	}
	return left <= 0
}
