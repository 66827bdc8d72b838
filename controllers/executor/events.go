// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// Actions of events: what the operator was doing.
const (
	actionUpdateInPlace = "UpdateInPlace"
	actionRecreate      = "Recreate"
)

// maxNote keeps notes below the 1 KiB that the API accepts, with room for the
// name of the pod.
const maxNote = 700

// eventDone reports a move that users care about, on the workload and on the
// pod. Taking a pod out of service and back shows in its conditions.
func (e *Executor) eventDone(workload client.Object, revision string, move inplace.Move) {
	switch move.Step.Action {
	case inplace.Patch:
		e.event(workload, move.Pod, corev1.EventTypeNormal, appsv1beta1.ReasonUpdatingPodInPlace, actionUpdateInPlace,
			"update to revision "+revision+" in place: "+move.Step.Change.String())
	case inplace.Recreate:
		e.event(workload, move.Pod, corev1.EventTypeNormal, appsv1beta1.ReasonRecreating, actionRecreate,
			"recreate for revision "+revision+": "+move.Step.Message)
	case inplace.MarkReady:
		if !move.Step.Since.IsZero() {
			e.event(workload, move.Pod, corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulUpdatePodInPlace, actionUpdateInPlace,
				"runs revision "+revision+", back in service")
		}
	case inplace.MarkNotReady, inplace.Wait:
	}
}

func (e *Executor) eventFailed(workload client.Object, move inplace.Move, err error) {
	e.event(workload, move.Pod, corev1.EventTypeWarning, appsv1beta1.ReasonFailedUpdatePodInPlace, actionUpdateInPlace,
		string(move.Step.Action)+" failed: "+err.Error())
}

// event records one event on the workload that names the pod, and one on the
// pod that names the workload.
func (e *Executor) event(workload client.Object, pod *corev1.Pod, eventType, reason, action, note string) {
	if len(note) > maxNote {
		note = note[:maxNote] + "..."
	}
	e.recorder.Eventf(workload, pod, eventType, reason, action, "pod %s: %s", pod.Name, note)
	e.recorder.Eventf(pod, workload, eventType, reason, action, "%s", note)
}
