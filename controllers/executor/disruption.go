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
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// budgetPeriod is when the API server is asked again after it refused an eviction. What
// changes a budget need not be a pod of the workload.
const budgetPeriod = 10 * time.Second

// askBudgets returns a plan without those moves that take a serving pod out of
// service, and that the PodDisruptionBudgets do not allow now. They go one after
// the other: each is asked for by a dry run of its eviction, when those before it
// have been counted.
func (e *Executor) askBudgets(ctx context.Context, plan inplace.Plan, now time.Time) inplace.Plan {
	first := slices.IndexFunc(plan.Moves, func(m inplace.Move) bool { return m.Evict })
	if first < 0 {
		return plan
	}
	pod := plan.Moves[first].Pod
	if name := uncounted(plan, now); name != "" {
		return withoutEvictions(plan, nil, fmt.Sprintf("pod %s was taken out of service, and is not reported not ready yet", name), time.Time{})
	}
	again, why := countedAt(plan, now), toBeCounted
	if !now.Before(again) {
		again, why = e.Turns.take(pod.Namespace, now)
	}
	if !again.IsZero() {
		return withoutEvictions(plan, nil, why, again)
	}
	givesUp := false
	defer func() { e.Turns.handBack(pod.Namespace, givesUp, e.clock.Now()) }()
	err := Evict(ctx, e.client, pod, client.DryRunAll)
	if changedMeanwhile(err) {
		return withoutEvictions(plan, nil, fmt.Sprintf("pod %s changed meanwhile", pod.Name), now.Add(time.Second))
	}
	if err != nil {
		return withoutEvictions(plan, nil, RefusalOf(err), now.Add(budgetPeriod))
	}
	givesUp = true
	return withoutEvictions(plan, pod, fmt.Sprintf("pod %s goes before", pod.Name), now.Add(countingPause))
}

// uncounted returns the name of a pod that was taken out of service, and that
// counts as healthy for its budget still; empty if there is none. A pod that was
// changed in service is out when the kubelet has acted on it.
func uncounted(plan inplace.Plan, now time.Time) string {
	for _, pod := range plan.Pods {
		if pod.Available {
			continue // complete, and not marked
		}
		if podutils.IsPodReady(pod.Pod) && (inplace.IsMarkedNotReady(pod.Pod) && !pod.Undrained || isBeingChanged(pod.Pod, now)) {
			return pod.Pod.Name
		}
	}
	return ""
}

// isBeingChanged reports whether containers of a pod are about to be restarted.
func isBeingChanged(pod *corev1.Pod, now time.Time) bool {
	progress := inplace.Observe(pod, now)
	return !progress.Complete && progress.Reason != inplace.ReasonNextBatch
}

// countedAt returns when those pods are counted that were reported not ready just
// now.
func countedAt(plan inplace.Plan, now time.Time) time.Time {
	var at time.Time
	for _, pod := range plan.Pods {
		for _, c := range pod.Pod.Status.Conditions {
			// A time to come is that of a clock which is wrong.
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && !c.LastTransitionTime.After(now) {
				at = latest(at, c.LastTransitionTime.Add(countingPause))
			}
		}
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// withoutEvictions returns a plan without the moves that are subject to a budget, but for that of
// one pod.
func withoutEvictions(plan inplace.Plan, but *corev1.Pod, why string, recheck time.Time) inplace.Plan {
	return plan.Without(func(move inplace.Move) *inplace.Bar {
		if !move.Evict || but != nil && move.Pod.UID == but.UID {
			return nil
		}
		return &inplace.Bar{
			Reason: inplace.ReasonDisruptionBudget, Message: "PodDisruptionBudgets are respected: " + why, Until: recheck,
		}
	})
}

// Evict evicts a pod if it is still the one that the decision was made on, and its
// PodDisruptionBudgets allow it.
func Evict(ctx context.Context, c client.Client, pod *corev1.Pod, options ...client.SubResourceCreateOption) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}},
	}
	return c.SubResource("eviction").Create(ctx, reference(pod), eviction, options...)
}

// RefusalOf says why an eviction was refused, in the words of the server: those of
// the budget, if it names one.
func RefusalOf(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return err.Error()
	}
	words := []string{status.Status().Message}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			words = append(words, cause.Message)
		}
	}
	return Shorten(strings.Join(words, " "))
}
