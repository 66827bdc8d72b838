// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// The names of the types of the API are long.
type (
	request = appsv1beta1.ContainerRecreateRequest
	state   = appsv1beta1.ContainerRecreateRequestContainerRecreateState
)

const (
	pending    = appsv1beta1.ContainerRecreateRequestPending
	recreating = appsv1beta1.ContainerRecreateRequestRecreating
	succeeded  = appsv1beta1.ContainerRecreateRequestSucceeded
	failed     = appsv1beta1.ContainerRecreateRequestFailed
	completed  = appsv1beta1.ContainerRecreateRequestCompleted
)

// What the status of a request says that did not come to its end, in OpenKruise's words.
const (
	goneMessage     = "pod has gone"
	deadlineMessage = "recreating has exceeded the activeDeadlineSeconds"
)

// isOpen reports whether something is to be done for a request.
func isOpen(r *request) bool { return r.DeletionTimestamp == nil && r.Status.CompletionTime == nil }

// inTurn returns the request that is carried out now: the one that is begun, or the oldest of those
// that are open; nil if there is none.
func inTurn(requests []*request) *request {
	open := slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return !isOpen(r) })
	if len(open) == 0 {
		return nil
	}
	return slices.MinFunc(open, func(a, b *request) int {
		return cmp.Or(compareBegun(a, b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// compareBegun puts those first that are carried out already.
func compareBegun(a, b *request) int {
	switch isBegun := a.Status.Phase == recreating; {
	case isBegun == (b.Status.Phase == recreating):
		return 0
	case isBegun:
		return -1
	default:
		return 1
	}
}

// isFinal reports whether a container comes to nothing else any more.
func isFinal(s state) bool { return s.Phase == succeeded || s.Phase == failed }

// strategyOf returns how containers are restarted.
func strategyOf(r *request) appsv1beta1.ContainerRecreateRequestStrategy {
	if r.Spec.Strategy == nil {
		return appsv1beta1.ContainerRecreateRequestStrategy{}
	}
	return *r.Spec.Strategy
}

// progress is how far a request is with a pod.
type progress struct {
	request *request
	pod     *corev1.Pod
	now     time.Time
	// states are those of the containers, in the order of the request.
	states []state
	// again is when time alone changes something; zero if it does not.
	again time.Time
}

// observe tells how far a request is, by its pod.
func observe(r *request, pod *corev1.Pod, now time.Time) *progress {
	p := &progress{request: r, pod: pod, now: now, states: slices.Clone(r.Status.ContainerRecreateStates)}
	p.begin()
	for i := range p.states {
		if !isFinal(p.states[i]) {
			p.follow(&p.states[i])
		}
	}
	return p
}

// begin notes what there is before anything is restarted. OpenKruise has noted it in the spec.
func (p *progress) begin() {
	for i, c := range p.request.Spec.Containers {
		if len(p.states) <= i {
			p.states = append(p.states, state{Name: c.Name, Phase: pending})
		}
		s := &p.states[i]
		if s.ContainerID != "" || isFinal(*s) {
			continue
		}
		if before := c.StatusContext; before != nil {
			s.ContainerID, s.RestartCount = before.ContainerID, before.RestartCount
		} else if status := statusOf(p.pod, c.Name); status != nil {
			s.ContainerID, s.RestartCount = status.ContainerID, status.RestartCount
		}
		if s.ContainerID == "" {
			fail(s, fmt.Sprintf("container %s of pod %s has not been started yet, or the pod has none of that name", c.Name, p.pod.Name))
		}
	}
}

func fail(s *state, message string) { s.Phase, s.Message = failed, message }

// isGiven reports whether the operator has had a container restarted for the request.
func (p *progress) isGiven(name string) bool {
	given := inplace.RestartedOnRequest(p.pod)
	return given != nil && given.UID == p.request.UID && slices.Contains(given.Containers, name)
}

// follow brings the state of a container to what the pod shows.
func (p *progress) follow(s *state) {
	status := statusOf(p.pod, s.Name)
	s.IsKilled = s.IsKilled || p.isGiven(s.Name)
	isOther := status != nil && status.ContainerID != "" && (status.ContainerID != s.ContainerID || status.RestartCount > s.RestartCount)
	hasRestarted := isOther && (s.IsKilled || !strategyOf(p.request).ForceRecreate) && (!p.isGiven(s.Name) || inplace.HasRestarted(p.pod, s.Name, p.now))
	switch {
	case !hasRestarted && !s.IsKilled:
		s.Phase = pending
		return
	case !hasRestarted, !status.Ready, status.State.Running == nil:
		s.Phase = recreating
		return
	}
	at := status.State.Running.StartedAt.Add(time.Duration(strategyOf(p.request).MinStartedSeconds) * time.Second)
	if p.now.Before(at) {
		s.Phase = recreating
		p.within(at)
		return
	}
	s.Phase, s.Message = succeeded, ""
}

// within asks for another look at a moment.
func (p *progress) within(at time.Time) {
	if p.again.IsZero() || at.Before(p.again) {
		p.again = at
	}
}

// toBeRestarted returns the containers that have not been restarted yet.
func (p *progress) toBeRestarted() []string {
	var names []string
	for _, s := range p.states {
		if s.Phase == pending {
			names = append(names, s.Name)
		}
	}
	return names
}

// failContainer notes why a container cannot be restarted.
func (p *progress) failContainer(name, why string) {
	for i := range p.states {
		if p.states[i].Name == name {
			fail(&p.states[i], why)
		}
	}
}

// failAll lets all containers fail that have not come to an end.
func (p *progress) failAll(why string) {
	for i := range p.states {
		if !isFinal(p.states[i]) {
			fail(&p.states[i], why)
		}
	}
}

// isDone reports whether nothing more is to be done, and says why, if there is something to say.
func (p *progress) isDone() (message string, done bool) {
	var without []string
	isOver := true
	for _, s := range p.states {
		isOver = isOver && isFinal(s)
		if s.Phase == failed {
			without = append(without, s.Name+": "+s.Message)
		}
	}
	switch {
	case len(without) > 0 && (isOver || strategyOf(p.request).FailurePolicy != appsv1beta1.ContainerRecreateRequestFailurePolicyIgnore):
		return "not restarted: " + strings.Join(without, "; "), true
	default:
		return "", isOver
	}
}

// asks returns what the pod is asked for; nil for nothing.
func (p *progress) asks() *appsv1beta1.PodRecreateRequest {
	strategy := strategyOf(p.request)
	asked := &appsv1beta1.PodRecreateRequest{
		Name: p.request.Name, UID: p.request.UID, Ordered: strategy.OrderedRecreate, MinStartedSeconds: strategy.MinStartedSeconds,
		UnreadyGracePeriodSeconds: strategy.UnreadyGracePeriodSeconds,
	}
	for _, s := range p.states {
		if strategy.OrderedRecreate && s.Phase == recreating && !s.IsKilled {
			break // it was restarted by itself, and those after it wait for it
		}
		if s.Phase == pending || p.isGiven(s.Name) {
			asked.Containers = append(asked.Containers, s.Name)
		}
	}
	if len(asked.Containers) == 0 {
		return nil
	}
	return asked
}

// describe writes how far the request is into its status.
func (p *progress) describe(status *appsv1beta1.ContainerRecreateRequestStatus, message string, isOver bool) {
	status.Phase, status.Message, status.ContainerRecreateStates = recreating, message, p.states
	if isOver {
		status.Phase, status.CompletionTime = completed, &metav1.Time{Time: p.now}
	}
}

// isLate returns whether the time of a request is over, and else when it will be.
func isLate(r *request, now time.Time) (late bool, at time.Time) {
	if r.Spec.ActiveDeadlineSeconds == nil {
		return false, time.Time{}
	}
	at = r.CreationTimestamp.Add(time.Duration(*r.Spec.ActiveDeadlineSeconds) * time.Second)
	return !now.Before(at), at
}

// isGone reports whether a pod is not there any more that a request is about; nil is no pod.
func isGone(r *request, pod *corev1.Pod) bool {
	return pod == nil || pod.DeletionTimestamp != nil || inplace.HasEnded(pod) ||
		isIdentified(r) && r.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey] != string(pod.UID)
}

// isIdentified reports whether the label says which pod a request is about. Before the request is
// begun, it may be that of a manifest which was copied from another request.
func isIdentified(r *request) bool {
	return r.Status.Phase != "" && r.Labels[appsv1beta1.ContainerRecreateRequestPodUIDKey] != ""
}

// statusOf returns the status of a container; nil if there is none.
func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		if i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return &statuses[i]
		}
	}
	return nil
}
