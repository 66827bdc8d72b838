// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// A pod without a readiness gate is drained by a label that an admission policy heeds.
// Whether there is such a policy, and acts on the pod, only a write can tell; so a dry run
// asks before the first pod of a revision is drained, and again when a drained pod is ready
// nevertheless.

// DrainPause is the pause of a manager that has just begun: the policy takes it for gone until
// the API server has seen its first heartbeat.
const DrainPause = 3 * time.Second

// drainVerdict is what is known of the label for the pods of a workload.
type drainVerdict struct {
	// accepted: the API server kept the pod out of service that was asked for last, until
	// it is to be asked again: a policy, or its switch, is deleted without an event on the
	// workload or its pods.
	accepted bool
	until    time.Time
	// refused says why it does not; nil if that is not known.
	refused *inplace.Refusal
}

// refusal returns why pods cannot be drained by the label; nil if that is not known. It is
// asked for again from time to time: a policy that is installed changes no pod.
func (v *drainVerdict) refusal(now time.Time) *inplace.Refusal {
	if v.refused != nil && now.Before(v.refused.Until) {
		return v.refused
	}
	return nil
}

func (v *drainVerdict) accept(now time.Time) {
	v.accepted, v.refused, v.until = true, nil, now.Add(refusalPeriod)
}

// forget forgets what was accepted too long ago.
func (v *drainVerdict) forget(now time.Time) {
	v.accepted = v.accepted && now.Before(v.until)
}

func (v *drainVerdict) refuse(message string, now time.Time) {
	v.accepted = false
	v.refused = &inplace.Refusal{Reason: inplace.ReasonCannotDrain, Message: message, Until: now.Add(refusalPeriod), Denied: true}
}

// mustTry reports whether a move needs a dry run of the label first.
func (v *drainVerdict) mustTry(move inplace.Move) bool {
	return inplace.DrainsByLabel(move.Pod, move.Step) && (!v.accepted || inplace.HasDrainedLabel(move.Pod))
}

// tryDrain asks the API server whether the label keeps the pod of a move out of service.
// The Result counts a refusal, or says why there was no answer.
func (e *Executor) tryDrain(ctx context.Context, known *drainVerdict, move inplace.Move, now time.Time) Result {
	pod := move.Pod
	e.firstDrain()
	keeps, err := e.keepsDrained(ctx, pod)
	if err == nil && !keeps && e.clock.Since(e.firstDrain()) < e.DrainPause {
		err = wait.PollUntilContextCancel(ctx, e.DrainPause, false, func(ctx context.Context) (bool, error) {
			again, err := e.keepsDrained(ctx, pod)
			keeps = again
			return true, err
		})
	}
	switch {
	case err == nil && keeps, IsNoDryRun(err):
		known.accept(now) // a webhook that takes no part in dry runs says nothing
		return Result{}
	case err == nil:
		known.refuse(fmt.Sprintf("the API server does not keep pods out of service in namespace %s: "+
			"it does not act by the admission policy insitu-drain there", pod.Namespace), now)
	case IsRefusal(err):
		ctrl.LoggerFrom(ctx).Error(err, "Drain of pod refused", "Pod", klog.KObj(pod))
		known.refuse(fmt.Sprintf("the API server refuses label %s of pod %s: %s",
			appsv1beta1.DrainedLabel, pod.Name, Shorten(ServerWords(err))), now)
	default:
		return newResult(ctx, []inplace.Move{move}, []error{err})
	}
	return Result{Refused: 1}
}

// EndDrain ends the drain of a pod by the label, see inplace.EndDrain, and reports whether
// there was something to end.
func EndDrain(ctx context.Context, c client.Client, pod *corev1.Pod, keepOwn bool, now time.Time) (bool, error) {
	body, err := inplace.EndDrain(pod, keepOwn, metav1.NewTime(now))
	if body == nil || err != nil {
		return false, err
	}
	if err := c.Status().Patch(ctx, reference(pod), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return false, fmt.Errorf("end the drain of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return true, nil
}

// ReleaseFromRequest takes off a pod what OpenKruise keeps it out of service by for a
// ContainerRecreateRequest, if the pod is still the one that this was decided on.
func ReleaseFromRequest(ctx context.Context, c client.Client, pod *corev1.Pod, request client.Object, now time.Time) error {
	body, err := inplace.ReleaseFromRequest(pod, request.GetNamespace()+"/"+request.GetName(), metav1.NewTime(now))
	if body == nil || err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, reference(pod), client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("let pod %s/%s serve: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// keepsDrained has the API server say by a dry run whether it keeps a pod out of service.
func (e *Executor) keepsDrained(ctx context.Context, pod *corev1.Pod) (bool, error) {
	body, err := inplace.TrialDrain(pod, metav1.NewTime(e.clock.Now()))
	if err != nil {
		return false, err
	}
	answer := reference(pod)
	err = e.client.Status().Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, body),
		client.DryRunAll, client.DisableReadYourWritesConsistency)
	if err != nil {
		return false, fmt.Errorf("try to drain pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if answer.UID == "" {
		return true, nil // an inspection, which does not ask: see workload.Withhold
	}
	return inplace.KeepsDrained(answer), nil
}
