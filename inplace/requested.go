// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A ContainerRecreateRequest asks for restarts of single containers of one pod. Its controller
// notes that in an annotation of the pod, and the record of the pod's updates says which of the
// containers were restarted for it. So whatever else is done to the pod, each is restarted once,
// under the same rules as for an update.

// RecreateRequestOf returns what a ContainerRecreateRequest asks of a pod; nil if none does. An
// annotation that cannot be read asks for nothing.
func RecreateRequestOf(pod *corev1.Pod) *appsv1beta1.PodRecreateRequest {
	raw, ok := pod.Annotations[appsv1beta1.RecreateRequestAnnotation]
	if !ok {
		return nil
	}
	request := &appsv1beta1.PodRecreateRequest{}
	if json.Unmarshal([]byte(raw), request) != nil {
		return nil
	}
	return request
}

// RestartedOnRequest returns the containers of a pod that were restarted for the
// ContainerRecreateRequest that the pod was asked by last, and its UID; nil if there was none.
func RestartedOnRequest(pod *corev1.Pod) *appsv1beta1.InPlaceUpdateRecreateRequest {
	state, err := readState(pod)
	if err != nil || state == nil {
		return nil
	}
	return state.RecreateRequest
}

// requested returns the containers that the pod's request still wants restarted, in its order.
func (o *observed) requested() []string {
	if o.request == nil {
		return nil
	}
	done := o.state.RecreateRequest
	return slices.DeleteFunc(slices.Clone(o.request.Containers), func(name string) bool {
		return o.container(name).name == "" || done != nil && done.UID == o.request.UID && slices.Contains(done.Containers, name)
	})
}

// isRequested reports whether a container is to be restarted for the request of its pod.
func (o *observed) isRequested(container string) bool {
	return slices.Contains(o.requested(), container)
}

// recordRequest notes which containers a change restarts for the request of the pod.
func recordRequest(state *appsv1beta1.InPlaceUpdateState, o *observed, change Change) {
	state.RecreateRequest = o.state.RecreateRequest
	var given []string
	for _, image := range change.Images {
		if image.Requested {
			given = append(given, image.Container)
		}
	}
	if len(given) == 0 {
		return
	}
	record := &appsv1beta1.InPlaceUpdateRecreateRequest{UID: o.request.UID}
	if before := o.state.RecreateRequest; before != nil && before.UID == o.request.UID {
		record.Containers = slices.Clone(before.Containers)
	}
	record.Containers = append(record.Containers, given...)
	state.RecreateRequest = record
}

// requestName names the request of the pod, for messages.
func (o *observed) requestName() string { return nameOfRequest(o.request.Name) }

func nameOfRequest(name string) string {
	return appsv1beta1.ContainerRecreateRequestKind.Kind + " " + name
}

// ForRequest is what the message of a Blocker ends with, if its pod is restarted for the
// ContainerRecreateRequest of a name.
func ForRequest(name string) string { return "; it is restarted for " + nameOfRequest(name) }

// requestedChanges returns how the containers are restarted that are to be now: all that are
// requested or, one after the other, the first of them. Why none is, is in the Refusal.
func (o *observed) requestedChanges(now time.Time) ([]ImageChange, *Refusal) {
	names := o.requested()
	if o.request.Ordered {
		if why := o.awaitsContainer(now); why != nil {
			return nil, why
		}
		names = names[:1]
	}
	var changes []ImageChange
	for _, container := range o.containers {
		if !slices.Contains(names, container.name) {
			continue
		}
		change, refused := o.restartOf(container, o.requestName())
		if refused != nil {
			return nil, refused
		}
		change.Requested = true
		changes = append(changes, *change)
	}
	return changes, nil
}

// restartOf returns how a container is restarted, for the request of a name, that runs what it is to
// run.
func (o *observed) restartOf(container liveContainer, request string) (*ImageChange, *Refusal) {
	c := containerChange{
		live: container, wanted: Container{Name: container.name, Image: container.image, Sidecar: container.sidecar},
		before: container.image, evidence: o.evidenceOf(container.name), base: container.image, isAsked: true, request: request, recorded: o.state.EquivalentImages[container.name],
	}
	if c.recorded != "" && spells(container.image, c.recorded) {
		c.base, c.alias = c.recorded, true
	}
	return c.decide()
}

// awaitsContainer returns why the next container is not restarted yet: one that was before it is
// not ready for long enough.
func (o *observed) awaitsContainer(now time.Time) *Refusal {
	done := o.state.RecreateRequest
	if done == nil || done.UID != o.request.UID {
		return nil
	}
	for _, name := range done.Containers {
		status := o.container(name).status
		wait := &Refusal{
			Reason:  ReasonNextBatch,
			Message: fmt.Sprintf("%s restarts one container after the other, and %s is not ready", o.requestName(), name),
		}
		if e := o.evidenceOf(name); e != nil && !e.done() || !status.Ready || status.State.Running == nil {
			return wait
		}
		until := status.State.Running.StartedAt.Add(time.Duration(o.request.MinStartedSeconds) * time.Second)
		if now.Before(until) {
			wait.Message, wait.Until = fmt.Sprintf("%s for %d seconds", wait.Message, o.request.MinStartedSeconds), until
			return wait
		}
	}
	return nil
}

// restartOnRequest restarts the containers that a ContainerRecreateRequest names, of a pod that
// stays at its revision.
func (s *situation) restartOnRequest() *Step {
	batch, why := s.requestedBatch()
	if batch == nil || why != nil {
		return nil
	}
	step := batch.first((*situation).awaitHook, (*situation).drain, (*situation).patch)
	if step.Action == MarkNotReady || step.Action == SetLifecycle {
		step.Message = fmt.Sprintf("to be changed: %s", batch.change)
	}
	step.OnRequest = true
	return step
}

// awaitRequest says why the containers are not restarted that a ContainerRecreateRequest names, of
// a pod that serves meanwhile.
func (s *situation) awaitRequest() *Step {
	_, why := s.requestedBatch()
	if why == nil {
		return nil
	}
	return &Step{State: Waiting, Reason: why.Reason, Message: why.Message, Until: why.Until, Denied: why.Denied}
}

// stayOut keeps a pod out of service whose containers are restarted one after the other on request,
// until the last of them is; nil for another pod.
func (s *situation) stayOut() *Step {
	if s.observed.request == nil || !s.observed.request.Ordered || !IsMarkedNotReady(s.facts.Pod) || len(s.observed.requested()) == 0 {
		return nil
	}
	why := s.observed.awaitsContainer(s.now)
	if why == nil {
		return nil
	}
	return &Step{State: Restarting, Reason: why.Reason, Message: why.Message, Until: why.Until}
}

// requestedBatch returns the situation of a pod whose containers are restarted for its request at
// the revision that it has; nil if none are, or not now: then the Refusal says why.
func (s *situation) requestedBatch() (*situation, *Refusal) {
	o := s.observed
	switch {
	case len(o.requested()) == 0, len(o.progress().Next) > 0, o.resized.Restarts && o.resized.IsUnderWay():
		return nil, nil // what was begun comes first
	case s.facts.Refused != nil:
		return nil, s.facts.Refused
	}
	images, refused := o.requestedChanges(s.now)
	if refused != nil {
		return nil, refused
	}
	first, later := o.splitBatch(images)
	batch, target := s.with(Change{Images: first, Later: later, Shrink: o.shrinks()}), *s.target
	target.Revision = Revision{Name: RevisionOf(s.facts.Pod), Template: s.target.Template}
	if o.request.UnreadyGracePeriodSeconds != nil {
		target.MustDrain, target.KeepReady = true, nil
	}
	batch.target = &target
	return batch, batch.undrainable()
}

// asRequested gives the situation a target under which a pod is out of service for as long as a
// request for it says, whatever else is changed with it. Where the pod cannot be taken out of
// service, the request waits, and no update goes with it.
func (s *situation) asRequested() {
	request := s.observed.request
	if request == nil || request.UnreadyGracePeriodSeconds == nil || len(s.observed.requested()) == 0 {
		return
	}
	if s.observed.requestWaits = !s.target.canDrain(s.facts.Pod); s.observed.requestWaits {
		return
	}
	target := *s.target
	target.GracePeriod = max(target.GracePeriod, time.Duration(*request.UnreadyGracePeriodSeconds)*time.Second)
	target.KeepReady = nil
	s.target = &target
}

// RestartOf returns how a container of a pod is restarted in place that runs what it is to run, or
// why it cannot be: for good or, with [ReasonSettling], not now.
func RestartOf(pod *corev1.Pod, container string, now time.Time) (*ImageChange, *Refusal) {
	o := observedOf(pod, now)
	live := o.container(container)
	if live.name == "" {
		return nil, &Refusal{Reason: ReasonContainersChanged, Message: fmt.Sprintf("the pod has no container %s that lives as long as the pod", container)}
	}
	return o.restartOf(live, "")
}

// HasRestarted reports whether it is certain that a container of a pod was started for the last
// change that was made to it.
func HasRestarted(pod *corev1.Pod, container string, now time.Time) bool {
	e := observedOf(pod, now).evidenceOf(container)
	return e == nil || e.proved()
}
