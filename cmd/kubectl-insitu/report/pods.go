// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// States of pods that no plan is made for.
const (
	// Terminating: the pod is being deleted.
	Terminating = "Terminating"
	// Starting: the pod is not ready, and Kubernetes alone acts on it.
	Starting = "Starting"
	// Ended: the pod has ended for good, and counts for nothing.
	Ended = "Ended"
)

// planned is what the plan says of a pod.
type planned struct {
	inplace.PodState
	held   bool
	claims volumes.Claims
}

// pods returns what is told of the pods, ordered by their names.
func pods(f Facts, w Workload) []Pod {
	plans := map[string]planned{}
	for i, state := range f.Inspection.Plan.Pods {
		facts := f.Inspection.Workload.Pods[i]
		plans[state.Pod.Name] = planned{state, facts.Held, facts.Claims}
	}
	blocked := map[string]Blocker{}
	for _, b := range slices.Backward(w.Blockers) {
		blocked[b.Pod] = b
	}
	found := make([]Pod, 0, len(f.Pods))
	for _, pod := range f.Pods {
		plan, isPlanned := plans[pod.Name]
		told := newPod(pod)
		told.Revision = f.RevisionOf(pod)
		if isPlanned {
			told.follow(plan)
		} else {
			told.stand(f, pod, w)
		}
		if b, ok := blocked[pod.Name]; ok && told.State != Terminating {
			told.Reason, told.Message, told.Since = b.Reason, b.Message, b.Since
			if b.Step != "" && !isClaimsAlone(f.Inspection.Plan, b) {
				told.State = b.Step
			}
		}
		told.Containers = containers(pod, wantedBy(f, plan, isPlanned))
		told.Claims = claims(f, pod, plan)
		found = append(found, told)
	}
	slices.SortFunc(found, func(a, b Pod) int { return compareNames(a.Name, b.Name) })
	return found
}

// isClaimsAlone reports whether a blocker of a pod is about a claim, and the pod itself
// goes on.
func isClaimsAlone(plan inplace.Plan, b Blocker) bool {
	return slices.ContainsFunc(plan.Blockers, func(planned inplace.Blocker) bool {
		return planned.Claim != nil && planned.Pod.Name == b.Pod && planned.Reason == b.Reason
	})
}

func newPod(pod *corev1.Pod) Pod {
	told := Pod{
		Name: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName, IP: pod.Status.PodIP, CreationTimestamp: pod.CreationTimestamp,
		Ready: podutils.IsPodReady(pod), InPlace: inplace.UpdatedInPlace(pod),
	}
	for i := range pod.Status.ContainerStatuses {
		told.Restarts += pod.Status.ContainerStatuses[i].RestartCount
	}
	for _, status := range sidecarStatuses(pod) {
		told.Restarts += status.RestartCount
	}
	told.RestartsSinceUpdate = told.Restarts
	if before, err := strconv.Atoi(pod.Annotations[appsv1beta1.PodRestartCountKey]); err == nil {
		told.RestartsSinceUpdate = max(told.Restarts-int32(before), 0) //nolint:gosec // a number of restarts
	}
	return told
}

// follow says of a pod what the plan says of it.
func (p *Pod) follow(plan planned) {
	step := plan.Step
	p.State, p.Reason, p.Message, p.Since = string(step.State), step.Reason, step.Message, metav1.NewTime(step.Since)
	p.Updated, p.Ready, p.Available = plan.Updated, plan.Ready, plan.Available
	p.Kept = plan.held && !plan.Updated
	if plan.Pod.DeletionTimestamp != nil && step.State != inplace.Stuck {
		p.State = Terminating
	}
}

// stand says of a pod what it is, where there is no plan for it.
func (p *Pod) stand(f Facts, pod *corev1.Pod, w Workload) {
	p.Available = p.Ready
	p.Updated = slices.ContainsFunc(f.Revisions, func(r Revision) bool { return r.IsUpdate && r.Name == p.Revision })
	switch {
	case pod.DeletionTimestamp != nil:
		p.State, p.Since = Terminating, *pod.DeletionTimestamp
	case inplace.HasEnded(pod):
		p.State, p.Reason, p.Message = Ended, pod.Status.Reason, pod.Status.Message
	case !p.Ready:
		p.State = Starting
	case !p.Updated && w.Phase != Healthy:
		p.State = string(inplace.Waiting)
	default:
		p.State = string(inplace.Settled)
	}
}

// compareNames orders names, numbers at their ends as numbers, and before what is none.
func compareNames(a, b string) int {
	i, j := strings.LastIndexByte(a, '-')+1, strings.LastIndexByte(b, '-')+1
	m, errA := strconv.Atoi(a[i:])
	n, errB := strconv.Atoi(b[j:])
	if c := strings.Compare(a[:i], b[:j]); c != 0 || errA != nil && errB != nil {
		return cmp.Or(c, strings.Compare(a[i:], b[j:]))
	}
	switch {
	case errA != nil:
		return 1
	case errB != nil:
		return -1
	default:
		return cmp.Or(cmp.Compare(m, n), strings.Compare(a[i:], b[j:]))
	}
}
