// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

// MaxBlockers is how many blockers fit into a status.
const MaxBlockers = 10

// maxMessage keeps the summary of errors well below the 32 KiB that a message of
// a condition may have, and readable.
const maxMessage = 1024

// Summary says the first errors in full, those that say the same once, and how many there are
// more.
func Summary(errs []error) string {
	var words []string
	for _, err := range errs[:min(len(errs), MaxFailures)] {
		if !slices.Contains(words, err.Error()) {
			words = append(words, err.Error())
		}
	}
	message := strings.Join(words, "\n")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	if more := len(errs) - MaxFailures; more > 0 {
		message += fmt.Sprintf("\nand %d more", more)
	}
	return message
}

// Denials returns an error for each change that the API server is known to
// refuse, and that is not written therefore.
func Denials(plan inplace.Plan) []error {
	var errs []error
	said := sets.New[string]()
	for _, b := range plan.Blockers {
		if b.Denied && !said.Has(b.Message) {
			said.Insert(b.Message)
			errs = append(errs, errors.New(b.Message))
		}
	}
	return errs
}

// ResizeStatus returns what the status says of pods whose resources are to be
// changed; nil if there are none.
func ResizeStatus(plan inplace.Plan) *appsv1beta1.ResizeStatus {
	status := appsv1beta1.ResizeStatus{}
	for _, pod := range plan.Pods {
		step := pod.Step
		switch {
		case !step.IsResize():
		case step.Reason == inplace.ReasonResizeDeferred:
			status.Deferred++
		case step.State == inplace.Stuck:
			status.Kept++
		case step.Action == inplace.Wait:
			status.InProgress++
		}
	}
	if status == (appsv1beta1.ResizeStatus{}) {
		return nil
	}
	return &status
}

// Stall is what the condition Stalled says.
type Stall struct {
	Stalled         bool
	Reason, Message string
}

// StallBeforePlan returns the stall of a workload whose reconciliation ended before there
// was a plan, and whether the error that ended it needs a user: a spec that cannot be
// carried out, or an object that the API server refuses.
func StallBeforePlan(failure error) (Stall, bool) {
	invalid := SpecError{}
	switch {
	case errors.As(failure, &invalid):
		return Stall{true, cmp.Or(invalid.Reason, appsv1beta1.ReasonInvalidSpec), invalid.Error()}, true
	case executor.IsRefusal(failure):
		return Stall{true, appsv1beta1.ReasonRefused, Summary([]error{failure})}, true
	default:
		return Stall{}, false
	}
}

// IsInvalidSpec reports whether the error that ended a reconciliation says that the spec
// cannot be carried out.
func IsInvalidSpec(failure error) bool {
	return errors.As(failure, &SpecError{})
}

// ReportStall records an event for a workload whose reconciliation has ended before there
// was a plan, in the words of the condition Stalled.
func ReportStall(recorder events.EventRecorder, owner client.Object, failure error) {
	if stall, known := StallBeforePlan(failure); known {
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, stall.Reason, ActionUpdate, "%s", executor.Shorten(stall.Message))
	}
}

// FindStall looks for what needs a user: a write that the server refuses, or a
// pod that is stuck.
func FindStall(plan inplace.Plan, errs []error) Stall {
	for _, err := range errs {
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return Stall{true, appsv1beta1.ReasonRefused, Summary([]error{err})}
		}
	}
	for _, b := range plan.Blockers {
		if b.State == inplace.Stuck {
			return Stall{true, b.Reason, fmt.Sprintf("pod %s: %s", b.Pod.Name, b.Message)}
		}
	}
	return Stall{false, appsv1beta1.ReasonNotStalled, "nothing needs help"}
}

// Blockers returns the worst blockers: the moves that failed, by pod name, then
// what the plan says. One that was reported before keeps the time since which it
// blocks.
func Blockers(plan inplace.Plan, failed map[string]error, before []appsv1beta1.Blocker, now time.Time) []appsv1beta1.Blocker {
	known := map[[2]string]metav1.Time{}
	for _, b := range before {
		known[[2]string{b.Pod, b.Reason}] = b.Since
	}
	var blockers []appsv1beta1.Blocker
	for _, b := range slices.Concat(failedMoves(plan, failed), plan.Blockers) {
		if len(blockers) == MaxBlockers {
			break
		}
		since, ok := known[[2]string{b.Pod.Name, b.Reason}]
		switch {
		case ok:
		case !b.Since.IsZero():
			since = metav1.NewTime(b.Since)
		default:
			since = metav1.NewTime(now)
		}
		blockers = append(blockers, appsv1beta1.Blocker{
			Pod: b.Pod.Name, Step: string(b.State), Reason: b.Reason, Message: b.Message, Since: since.Rfc3339Copy(),
		})
	}
	return blockers
}

// failedMoves returns a blocker for every move that failed.
func failedMoves(plan inplace.Plan, failed map[string]error) []inplace.Blocker {
	var blockers []inplace.Blocker
	for _, pod := range plan.Pods {
		if err := failed[pod.Pod.Name]; err != nil {
			blockers = append(blockers, inplace.Blocker{
				Pod: pod.Pod, State: pod.Step.State, Reason: appsv1beta1.ReasonFailedUpdatePodInPlace, Message: Summary([]error{err}),
			})
		}
	}
	return blockers
}

// ReportStuck records an event for every pod that is reported as stuck after a
// reconciliation and was not before, in the words of the blocker.
//
// What is reported is bounded, and what is not reported cannot be known again: a pod
// for which there is no room is told of when it comes into the report.
func ReportStuck(recorder events.EventRecorder, owner client.Object, plan inplace.Plan, before, after []appsv1beta1.Blocker) {
	for _, b := range plan.Blockers {
		isThis := func(reported appsv1beta1.Blocker) bool {
			return reported.Pod == b.Pod.Name && reported.Step == string(inplace.Stuck) &&
				(reported.Reason == b.Reason || inplace.MayTakeTurns(reported.Reason, b.Reason))
		}
		isNew := slices.ContainsFunc(after, isThis) && !slices.ContainsFunc(before, isThis)
		// The executor tells of denials, once for all pods that they hold for.
		if b.State == inplace.Stuck && isNew && !b.Denied {
			note := executor.Shorten(b.Message)
			recorder.Eventf(owner, b.Pod, corev1.EventTypeWarning, b.Reason, ActionUpdate, "pod %s: %s", b.Pod.Name, note)
			if b.Claim != nil {
				recorder.Eventf(b.Claim, owner, corev1.EventTypeWarning, b.Reason, ActionUpdate, "%s", note)
			}
		}
	}
}

// turns are the reasons of pods whose turn comes when others are done.
var turns = sets.New(inplace.ReasonBudget, inplace.ReasonUpdateOrder, inplace.ReasonMaxConcurrent, inplace.ReasonMaxConcurrentClaims)

// FirstBlocker says in words, after those on the progress of an update, what the worst of its
// pods waits for; it is empty if pods wait for their turn only.
func FirstBlocker(plan inplace.Plan) string {
	if len(plan.Blockers) == 0 || turns.Has(plan.Blockers[0].Reason) {
		return ""
	}
	first := plan.Blockers[0]
	return fmt.Sprintf("; pod %s: %s: %s", first.Pod.Name, first.Reason, executor.Shorten(first.Message))
}

// Undrained says in words, after those on the progress of an update, that pods are restarted
// in service, and why; it is empty if pods can be drained, or that was not asked.
func Undrained(plan inplace.Plan) string {
	if plan.CannotDrain == nil {
		return ""
	}
	return "; pods without a readiness gate are restarted in service: " + plan.CannotDrain.Message
}

// ReportWithheld records an event where pods are missing that scaleStrategy.maxUnavailable
// does not allow yet.
func ReportWithheld(recorder events.EventRecorder, owner client.Object, withheld int) {
	if withheld > 0 {
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, appsv1beta1.ReasonScaleUpLimited, ActionCreate, "%s", inplace.Withheld(withheld))
	}
}

// WithheldMessage says the same in words, after those on how many pods there are; it is empty
// if none is withheld.
func WithheldMessage(withheld int) string {
	if withheld == 0 {
		return ""
	}
	return "; " + inplace.Withheld(withheld)
}
