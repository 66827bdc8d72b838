// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// Plan decides on the moves of a workload's pods, and asks the API server by dry
// run, once for each change, whether it accepts it, before a pod is drained for it.
// Pods whose change is refused are planned as such. Moves that PodDisruptionBudgets
// do not allow are left out, see inplace.Target. Others are the blockers that others than the
// planner know of.
//
// The plan's moves are to be carried out. Those whose dry run gave no answer are
// not among them; the Result says what came instead.
func (e *Executor) Plan(ctx context.Context, owner client.Object, w inplace.Workload, now time.Time, others ...inplace.Blocker) (inplace.Plan, Result) {
	w.Pods = slices.Clone(w.Pods)
	w.Target.Pull = e.PullPolicyOf(w.Target.Pull)
	known := e.memory.verdictsOn(owner.GetUID(), w.Target.Name)
	injection, pulls := newInjection(e, w, known), newPulls(e, owner, w, known, now)
	plan, result := e.judge(ctx, newSuccessors(e, owner, w, known), injection, pulls)
	pulls.tend(ctx, plan, w.Pods)
	plan = plan.RecheckedBy(pulls.again())
	plan = e.askBudgets(ctx, pulls.withoutUnpulled(injection.withoutUnanswered(plan, w.Pods)), now)
	injection.tell(owner, plan, w.Pods)
	return plan.With(others...), result
}

// judge makes plans until the API server has said of all their moves what it says to them.
func (e *Executor) judge(ctx context.Context, successors *successors, injection *injection, pulls *pulls) (inplace.Plan, Result) {
	owner, w, known, now := successors.owner, successors.workload, successors.known, pulls.now
	tried := sets.New[types.UID]()
	known.drain.forget(now)
	for {
		w.Target.CannotDrain = known.drain.refusal(now)
		plan := e.makePlan(w, now).WithCannotDrain(known.drain.refused)
		if known.mark(w.Pods, plan, now) || injection.refuse(ctx, w.Pods, plan, now) ||
			successors.keep(ctx, w.Pods, plan, now) || pulls.refuse(ctx, w.Pods, plan) {
			continue
		}
		untried := known.untried(plan.Moves)
		if slices.ContainsFunc(untried, func(m inplace.Move) bool { return tried.Has(m.Pod.UID) }) {
			// What was refused a moment ago would be refused again.
			return withoutUntried(plan, known, Result{}), Result{Refused: len(untried)}
		}
		for _, move := range untried {
			tried.Insert(move.Pod.UID)
		}
		if len(untried) > 0 {
			result := e.try(ctx, owner, known, untried, now)
			if result.Refused == 0 && result.Conflicts+len(result.Failed) > 0 {
				return withoutUntried(plan, known, result), result
			}
			continue
		}
		if i := slices.IndexFunc(plan.Moves, known.drain.mustTry); i >= 0 {
			result := e.tryDrain(ctx, &known.drain, plan.Moves[i], now)
			if result.Refused > 0 {
				continue
			}
			if result.IsUnfinished() || len(result.Failed) > 0 {
				return withoutUntried(plan, known, result), result
			}
		}
		return plan, Result{}
	}
}

// withoutUntried returns a plan without the moves whose change the API server has not
// judged. The errors of those that were tried name themselves why they wait.
func withoutUntried(plan inplace.Plan, known *verdicts, tried Result) inplace.Plan {
	return plan.Without(func(move inplace.Move) *inplace.Bar {
		switch {
		case !known.mustTry(move) && !known.drain.mustTry(move):
			return nil
		case tried.Failed[move.Pod.Name] != nil:
			return &inplace.Bar{}
		default:
			return &inplace.Bar{
				Reason: inplace.ReasonAdmissionUnknown, Message: "the API server has not answered yet whether it accepts the change",
			}
		}
	})
}

// try asks the API server what it says to the patches that moves lead to, and
// notes its verdicts.
func (e *Executor) try(ctx context.Context, owner client.Object, known *verdicts, moves []inplace.Move, now time.Time) Result {
	errs := slices.Repeat([]error{context.Canceled}, len(moves)) // what is left out when the context ends
	workqueue.ParallelizeUntil(ctx, e.Parallelism, len(moves), func(i int) {
		errs[i] = e.dryRun(ctx, known.revision, moves[i])
	})
	result := newResult(ctx, moves, errs)
	for i, err := range errs {
		pod, verdict := moves[i].Pod, known.on(moves[i].Step.Change)
		unrestarted := unrestartedError("")
		switch {
		case err == nil:
			verdict.accept(pod)
		case errors.As(err, &unrestarted):
			verdict.refuse(pod, inplace.Refusal{Reason: inplace.ReasonNotRestarted, Message: err.Error()}, now, refusalPeriod)
			result.Refused++
		case IsRefusal(err):
			if !verdict.isWitness(pod) {
				ctrl.LoggerFrom(ctx).Error(err, "Change of pod refused", "Pod", klog.KObj(pod))
				e.report(owner, pod, deniedEvent(err))
			}
			verdict.refuse(pod, newRefusal(pod, err), now, refusalPeriod)
			result.Refused++
		}
	}
	return result
}

// dryRun lets the API server judge the very patches that a move leads to. Where an
// admission webhook takes no part in dry runs, nothing is known, and nothing
// speaks against it.
func (e *Executor) dryRun(ctx context.Context, revision string, move inplace.Move) error {
	if err := e.dryRunResize(ctx, move); err != nil {
		return err
	}
	body, err := inplace.TrialPatch(move.Pod, move.Step, revision, e.clock.Now())
	if err != nil {
		return err
	}
	answer := reference(move.Pod)
	err = e.client.Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, body),
		client.DryRunAll, client.DisableReadYourWritesConsistency)
	switch {
	case IsNoDryRun(err):
		return nil
	case err != nil:
		return fmt.Errorf("try to update pod %s/%s in place: %w", move.Pod.Namespace, move.Pod.Name, err)
	default:
		return restarts(answer, move.Step.Change)
	}
}

// TryRestarts asks the API server by a dry run whether it lets containers of a pod be restarted. It
// returns why not, in the words of the server; nothing, if it does, or takes no part in dry runs. An
// error says that there was no answer, also that of a webhook that does not answer.
func (e *Executor) TryRestarts(ctx context.Context, pod *corev1.Pod, containers []inplace.ImageChange) (refusal string, err error) {
	move := inplace.Move{Pod: pod, Step: inplace.Step{Change: inplace.Change{Images: containers}}}
	err = e.dryRun(ctx, inplace.RevisionOf(pod), move)
	unrestarted := unrestartedError("")
	switch {
	case errors.As(err, &unrestarted):
		return err.Error(), nil
	case IsRefusal(err) && !apierrors.IsInternalError(err):
		return newRefusal(pod, err).Message, nil
	default:
		return "", err
	}
}

// unrestartedError is why a container would not be restarted.
type unrestartedError string

func (e unrestartedError) Error() string { return string(e) }

// respells reports whether a change restarts a container by another spelling of its image.
func respells(image inplace.ImageChange) bool { return image.Restart || image.Reads != "" }

// restarts returns an error if a container that a change restarts, by another spelling of
// its image, would have the image that it has: admission has changed that back.
func restarts(answer *corev1.Pod, change inplace.Change) error {
	for _, image := range slices.Concat(change.Images, change.Later) {
		isKept := func(c corev1.Container) bool { return c.Name == image.Container && c.Image == image.From }
		if respells(image) && slices.ContainsFunc(slices.Concat(answer.Spec.Containers, answer.Spec.InitContainers), isKept) {
			return unrestartedError(fmt.Sprintf("container %s cannot be restarted in place: admission changes %s, another spelling of its image, back to %s",
				image.Container, image.To, image.From))
		}
	}
	return nil
}

// learn notes what the API server said to the patches among moves, and returns
// how many it refused.
func (e *Executor) learn(workload client.Object, revision string, moves []inplace.Move, errs []error) int {
	known, now, refused := e.memory.verdictsOn(workload.GetUID(), revision), e.clock.Now(), 0
	for i, move := range moves {
		if move.Step.Action != inplace.Patch && move.Step.Action != inplace.Resize {
			continue
		}
		verdict := known.on(move.Step.Change)
		switch {
		case errs[i] == nil:
			verdict.accept(move.Pod)
			verdict.surprises = 0
		case IsRefusal(errs[i]):
			period := verdict.surprisePeriod()
			verdict.refuse(move.Pod, newRefusal(move.Pod, errs[i]), now, period)
			refused++
		}
	}
	return refused
}

// IsRefusal reports whether the API server refused a patch for what it says, as
// it would the next time. Admission answers with any code that its authors chose;
// what remains is that the server was in no state to judge, or the pod no longer
// the one that was meant. A webhook that must be asked and fails is an internal
// error among others.
func IsRefusal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || changedMeanwhile(err) {
		return false
	}
	if apierrors.IsInternalError(err) {
		return strings.Contains(err.Error(), "webhook")
	}
	return !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsUnauthorized(err) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}

// IsNoDryRun reports whether the API server refused only the dry run: a webhook
// says of itself that it has side effects. The server has no code for it.
func IsNoDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// newRefusal says who refused the change of which pod, in the words of the server.
func newRefusal(pod *corev1.Pod, err error) inplace.Refusal {
	refused := inplace.Refusal{Reason: deniedReason(err), Denied: true}
	refused.Message = fmt.Sprintf("the API server refuses to %s pod %s in place: %s", refusedVerb(err), pod.Name, Shorten(ServerWords(err)))
	return refused
}

// ServerWords returns what the API server said when it refused something.
func ServerWords(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
