// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// Actions of events: what the operator was doing.
const (
	actionUpdateInPlace = "UpdateInPlace"
	actionRecreate      = "Recreate"
	actionUpdateClaim   = "UpdateClaim"
)

// maxNote keeps notes below the 1 KiB that the API accepts, with room for the
// name of the pod.
const maxNote = 700

// event is what is told of a pod.
type event struct {
	kind, reason, action, note string
}

// eventOf returns the event for a move and what came of it; nil if there is
// nothing to tell.
func eventOf(revision string, move inplace.Move, err error) *event {
	switch {
	case err == nil:
		return doneEvent(revision, move)
	case changedMeanwhile(err):
		return unfollowedEvent(revision, move.Step, err)
	default:
		return failedEvent(move.Step, err)
	}
}

// doneEvent returns the event for a move that was carried out, or nil if the
// conditions of the pod tell it well enough.
func doneEvent(revision string, move inplace.Move) *event {
	step := move.Step
	switch step.Action {
	case inplace.Patch:
		note := "update to revision " + revision + " in place: " + step.Message
		if step.OnRequest {
			note = step.Message
		}
		return &event{corev1.EventTypeNormal, appsv1beta1.ReasonUpdatingPodInPlace, actionUpdateInPlace, note}
	case inplace.Resize:
		return resizeEvent(revision, step)
	case inplace.Recreate:
		note := "recreate for revision " + revision + ": " + step.Message
		if step.Reason == inplace.ReasonSpecifiedDelete {
			note = "recreate: " + step.Message // at whichever revision it gets then
		}
		return &event{corev1.EventTypeNormal, appsv1beta1.ReasonRecreating, actionRecreate, note}
	case inplace.MarkReady:
		if step.Since.IsZero() || inplace.RevisionOf(move.Pod) != revision {
			return nil // a new pod goes into service, or one that was not updated goes back
		}
		note := "back in service"
		if revision != "" {
			note = "runs revision " + revision + ", back in service"
		}
		return &event{corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulUpdatePodInPlace, actionUpdateInPlace, note}
	case inplace.SetLifecycle:
		return holdEvent(step)
	case inplace.ChangeClaims:
		return &event{corev1.EventTypeNormal, appsv1beta1.ReasonUpdatingClaim, actionUpdateClaim, step.Message}
	case inplace.MarkNotReady, inplace.Wait:
		return nil
	default:
		return nil
	}
}

// holdEvent returns the event for a pod that is given to a hook, nil for other
// changes of its lifecycle.
func holdEvent(step inplace.Step) *event {
	action := actionUpdateInPlace
	switch step.Lifecycle {
	case appsv1beta1.LifecycleStatePreparingUpdate:
	case appsv1beta1.LifecycleStatePreparingDelete:
		action = actionRecreate
	case appsv1beta1.LifecycleStatePreparingNormal, appsv1beta1.LifecycleStateNormal,
		appsv1beta1.LifecycleStateUpdating, appsv1beta1.LifecycleStateUpdated:
		return nil
	}
	note := step.Message + ": held by the lifecycle hook until its labels and finalizers are taken off"
	return &event{corev1.EventTypeNormal, string(step.Lifecycle), action, note}
}

// failedEvent returns the event for a move that the server refused.
func failedEvent(step inplace.Step, err error) *event {
	return &event{
		corev1.EventTypeWarning, appsv1beta1.ReasonFailedUpdatePodInPlace, actionUpdateInPlace,
		string(step.Action) + " failed: " + err.Error(),
	}
}

// deniedEvent returns the event for a dry run that the server refused: the pod
// stays as it is.
func deniedEvent(err error) *event {
	return &event{
		corev1.EventTypeWarning, deniedReason(err), actionUpdateInPlace,
		"the API server refuses to " + refusedVerb(err) + " the pod in place: " + ServerWords(err),
	}
}

// report records an event on the workload, naming the pod, and one on the pod.
func (e *Executor) report(workload client.Object, pod *corev1.Pod, what *event) {
	e.reportOnPod(workload, pod, what)
	e.reportOnWorkload(workload, []inplace.Move{{Pod: pod}}, []*event{what})
}

func (e *Executor) reportOnPod(workload client.Object, pod *corev1.Pod, what *event) {
	if what != nil {
		e.recorder.Eventf(pod, workload, what.kind, what.reason, what.action, "%s", Shorten(what.note))
	}
}

// reportOnWorkload records one event on the workload for all moves of which the
// same is told: with thousands of pods, events would cost more than the writes.
func (e *Executor) reportOnWorkload(workload client.Object, moves []inplace.Move, told []*event) {
	var different []event
	pods := map[event][]*corev1.Pod{}
	for i, what := range told {
		if what == nil {
			continue
		}
		if len(pods[*what]) == 0 {
			different = append(different, *what)
		}
		pods[*what] = append(pods[*what], moves[i].Pod)
	}
	for _, what := range different {
		e.recorder.Eventf(workload, pods[what][0], what.kind, what.reason, what.action, "%s: %s", naming(pods[what]), Shorten(what.note))
	}
}

// naming names pods: "pod a", or "pods a, b, c and 7 more".
func naming(pods []*corev1.Pod) string {
	const named = 3
	if len(pods) == 1 {
		return "pod " + pods[0].Name
	}
	names := make([]string, 0, named)
	for _, pod := range pods[:min(len(pods), named)] {
		names = append(names, pod.Name)
	}
	text := "pods " + strings.Join(names, ", ")
	if more := len(pods) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Shorten cuts a note of an event that the API server would not accept for its length.
func Shorten(text string) string {
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote], "") + "..."
}
