// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package executor carries out the steps that the planner decided on: many pods
// at once, each with the narrowest patch that does it.
package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// DefaultParallelism is how many pods are written to at the same time, unless
// Executor.Parallelism says otherwise.
const DefaultParallelism = 16

// Executor carries out moves.
type Executor struct {
	// Parallelism is how many pods are written to at the same time; at least 1.
	// With 1, they are written to in the order of the moves.
	Parallelism int
	// Metrics count what is done; nothing does, if they are nil.
	Metrics *KindMetrics
	// DrainPause is how long it waits before it asks again whether pods can be drained, if
	// the API server says that they cannot when it is asked for the first time. With 0, it
	// does not ask again.
	DrainPause time.Duration
	// Turns are those in which pods are taken out of service that PodDisruptionBudgets protect:
	// its own, if no others are set.
	Turns *Turns
	// Puller says how images are pulled before pods are taken out of service for them; none are,
	// if it is nil.
	Puller *Puller

	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	memory   memory
	claims   claimMemory

	// firstDrain returns when it asked first whether pods can be drained.
	firstDrain func() time.Time
}

// New returns an Executor that writes with the given client.
func New(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *Executor {
	return &Executor{
		Parallelism: DefaultParallelism, Turns: NewTurns(), client: c, recorder: recorder, clock: clock, memory: newMemory(), claims: newClaimMemory(),
		firstDrain: sync.OnceValue(clock.Now),
	}
}

// Result says what became of moves.
type Result struct {
	// Conflicts is the number of pods that were no longer as the move expected.
	// Nothing was written to them; they are to be planned again.
	Conflicts int
	// Failed holds the errors of the other moves that failed, by pod name.
	Failed map[string]error
	// Refused is the number of those whose patch the API server refused for what
	// it says. That is remembered: the next plan takes it into account.
	Refused int
	// Postponed is the number of moves beyond maxMoves, which are to be planned
	// again.
	Postponed int
}

// IsUnfinished reports whether there is to be another plan soon, although nothing
// failed.
func (r Result) IsUnfinished() bool {
	return r.Conflicts+r.Refused+r.Postponed > 0
}

// Errors returns the errors of failed moves in the order of the pods' names, so
// that the same failures read the same.
func (r Result) Errors() []error {
	all := make([]error, 0, len(r.Failed))
	for _, pod := range slices.Sorted(maps.Keys(r.Failed)) {
		all = append(all, r.Failed[pod])
	}
	return all
}

// With returns what both results say.
func (r Result) With(other Result) Result {
	all := Result{
		Conflicts: r.Conflicts + other.Conflicts, Refused: r.Refused + other.Refused, Postponed: r.Postponed + other.Postponed,
		Failed: map[string]error{},
	}
	maps.Copy(all.Failed, r.Failed)
	maps.Copy(all.Failed, other.Failed)
	return all
}

// maxMoves is how many pods are written to in one reconciliation. The plan is made
// again after that: it would be minutes old for the ten thousandth.
const maxMoves = 1000

// Run carries out moves of the pods of a workload towards a revision. A move
// that fails does not stop the others.
func (e *Executor) Run(ctx context.Context, workload client.Object, revision string, moves []inplace.Move) Result {
	postponed := max(len(moves)-maxMoves, 0)
	moves = moves[:len(moves)-postponed]
	errs, told := make([]error, len(moves)), make([]*event, len(moves))
	workqueue.ParallelizeUntil(ctx, e.Parallelism, len(moves), func(i int) {
		if errs[i] = e.carryOut(ctx, moves[i]); errs[i] == nil {
			e.count(revision, moves[i])
		}
		told[i] = eventOf(revision, moves[i], errs[i])
		e.reportOnPod(workload, moves[i].Pod, told[i])
	})
	e.reportOnWorkload(workload, moves, told)
	result := newResult(ctx, moves, errs)
	result.Refused = e.learn(workload, revision, moves, errs)
	result.Postponed = postponed
	return result
}

// HandOver prepares what belongs to pods for their recreation, and returns the names of those
// that are not to be deleted now. After an error, none of the moves is made.
type HandOver func(ctx context.Context, going []*corev1.Pod) (stay sets.Set[string], err error)

// RunHandedOver is as Run, for pods that own something: before some are recreated, they are
// handed over.
func (e *Executor) RunHandedOver(ctx context.Context, workload client.Object, revision string, moves []inplace.Move, handOver HandOver) (Result, error) {
	now := moves[:min(len(moves), maxMoves)]
	recreates := func(m inplace.Move) bool { return m.Step.Action == inplace.Recreate }
	var going []*corev1.Pod
	for _, move := range now {
		if recreates(move) {
			going = append(going, move.Pod)
		}
	}
	stay, err := handOver(ctx, going)
	if err != nil {
		return Result{}, err
	}
	stays := func(m inplace.Move) bool { return recreates(m) && stay.Has(m.Pod.Name) }
	result := e.Run(ctx, workload, revision, slices.DeleteFunc(slices.Clone(now), stays))
	result.Postponed = len(moves) - len(now)
	return result, nil
}

// newResult sorts what became of moves.
func newResult(ctx context.Context, moves []inplace.Move, errs []error) Result {
	result := Result{Failed: map[string]error{}}
	for i, err := range errs {
		switch {
		case err == nil:
		case changedMeanwhile(err):
			result.Conflicts++
			ctrl.LoggerFrom(ctx).V(1).Info("Pod changed meanwhile", "Pod", klog.KObj(moves[i].Pod), "reason", err.Error())
		default:
			result.Failed[moves[i].Pod.Name] = err
		}
	}
	return result
}

func (e *Executor) carryOut(ctx context.Context, move inplace.Move) error {
	ctrl.LoggerFrom(ctx).Info("Moving pod", "Pod", klog.KObj(move.Pod), "action", move.Step.Action, "note", move.Note)
	return e.write(ctx, move)
}

// changedMeanwhile reports whether a write was refused because the pod is no
// longer the one that the move was decided on.
func changedMeanwhile(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || namesUID(err)
}

// namesUID reports whether a patch was refused because another object has the
// name now. The server says so as if the patch tried to change the UID.
func namesUID(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

func (e *Executor) write(ctx context.Context, move inplace.Move) error {
	switch move.Step.Action {
	case inplace.MarkNotReady, inplace.MarkReady:
		return SetReadiness(ctx, e.client, move.Pod, move.Step, e.clock.Now())
	case inplace.SetLifecycle:
		return SetLifecycle(ctx, e.client, move.Pod, move.Step, e.clock.Now())
	case inplace.Patch:
		return e.patch(ctx, move)
	case inplace.Resize:
		return e.resize(ctx, move)
	case inplace.ChangeClaims:
		return e.changeClaims(ctx, move)
	case inplace.Recreate:
		return e.recreate(ctx, move)
	case inplace.Wait:
		return nil
	default:
		return fmt.Errorf("pod %s/%s: unknown action %q", move.Pod.Namespace, move.Pod.Name, move.Step.Action)
	}
}

// SetReadiness carries out a MarkReady or MarkNotReady step. A pod is marked ready
// only if it is still the one that this was decided on.
func SetReadiness(ctx context.Context, c client.Client, pod *corev1.Pod, step inplace.Step, now time.Time) error {
	body, err := inplace.ReadinessPatch(pod, step, metav1.NewTime(now))
	if err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, reference(pod), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("set readiness of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// SetLifecycle carries out a step of that name, if the pod is still the one that
// it was decided on.
func SetLifecycle(ctx context.Context, c client.Client, pod *corev1.Pod, step inplace.Step, now time.Time) error {
	body, status, err := inplace.LifecyclePatch(pod, step, metav1.NewTime(now))
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.StrategicMergePatchType, body)
	if status {
		err = c.Status().Patch(ctx, reference(pod), patch)
	} else {
		err = c.Patch(ctx, reference(pod), patch)
	}
	if err != nil {
		return fmt.Errorf("set lifecycle state of pod %s/%s to %s: %w", pod.Namespace, pod.Name, step.Lifecycle, err)
	}
	return nil
}

func (e *Executor) patch(ctx context.Context, move inplace.Move) error {
	body, err := inplace.RevisionPatch(move.Pod, move.Step)
	if err != nil {
		return err
	}
	if err := e.client.Patch(ctx, reference(move.Pod), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("update pod %s/%s in place: %w", move.Pod.Namespace, move.Pod.Name, err)
	}
	return nil
}

// recreate deletes a pod, and notes on the claims that need that when it was.
func (e *Executor) recreate(ctx context.Context, move inplace.Move) error {
	if err := e.changeClaims(ctx, move); err != nil {
		return err
	}
	return e.delete(ctx, move)
}

func (e *Executor) delete(ctx context.Context, move inplace.Move) error {
	pod := move.Pod
	if move.Evict {
		if err := Evict(ctx, e.client, pod); err != nil {
			return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		return nil
	}
	if err := DeletePod(ctx, e.client, pod); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// DeletePod deletes a pod if it is still the one that the decision was made on.
func DeletePod(ctx context.Context, c client.Writer, pod *corev1.Pod) error {
	return c.Delete(ctx, reference(pod), client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
}

// reference names a pod for a write. What is read back goes into the copy, never
// into an object of the cache.
func reference(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
}
