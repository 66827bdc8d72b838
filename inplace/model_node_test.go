// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// node is one pod as the API server holds it, with the kubelet and the
// EndpointSlices behind it.
//
// The kubelet works as the real one does: in one go it publishes the generation
// that it has seen, with the statuses from before, then stops a container that
// does not match and starts one of the image of *that* generation. Until then it
// sees nothing newer and publishes nothing. An image named missing cannot be
// pulled, one named crash cannot be kept running.
type node struct {
	*model
	name string
	// pod is nil while there is none.
	pod         *corev1.Pod
	incarnation int

	// How long it takes to stop a container, to become ready, and to follow
	// readiness in the EndpointSlices.
	stopTime, readyTime, listTime time.Duration
	// silent: the kubelet does nothing until then.
	silent time.Time
	// old: the kubelet reports no observed generation.
	old bool

	// seen is the generation that the kubelet works on.
	seen int64
	// wanted is the image in it, running the one of the running container.
	wanted, running string
	started         time.Time
	stopUntil       time.Time
	containers      int

	// keptReady: the user wanted the pod to serve during its last change.
	keptReady bool

	// request is the last that asked for a restart, of the pod with the UID askedOf, whose container
	// was number askedAt then.
	request, askedOf types.UID
	askedAt          int

	// listed: an EndpointSlice sends traffic to the pod. unequally is since
	// when that differs from its readiness.
	listed    bool
	unequally time.Time
}

// boot puts a pod in place that runs since builders.Start.
func (n *node) boot(pod *builders.PodBuilder, gated bool) {
	if gated {
		pod.Gated(corev1.ConditionTrue, builders.Start)
	}
	n.pod, n.incarnation = pod.Condition(corev1.ContainersReady, corev1.ConditionTrue, builders.Start).Build(), 1
	n.running, n.started = n.pod.Spec.Containers[0].Image, builders.Start
	n.wanted, n.seen, n.containers, n.listed = n.running, 1, 1, true
	n.written()
}

// written gives the pod the resource version of a write.
func (n *node) written() {
	n.version++
	n.pod.ResourceVersion = fmt.Sprint(n.version)
}

// delete starts the deletion of the pod.
func (n *node) delete() {
	n.pod.DeletionTimestamp = &metav1.Time{Time: n.now}
	n.written()
}

// available judges by what the node knows, not by what the planner could know: a
// container that is to be replaced does not count, nor one that was started just
// now while the pod's condition has not moved.
func (n *node) available() bool {
	if n.pod == nil || !isReady(n.pod) || IsMarkedNotReady(n.pod) || n.running != n.pod.Spec.Containers[0].Image {
		return false
	}
	since := latest(readySince(n.pod), n.started)
	minReady := time.Duration(n.workload.MinReadySeconds) * time.Second
	return minReady == 0 || n.now.After(since.Add(minReady))
}

func (n *node) busy() bool {
	return n.pod == nil || n.pod.DeletionTimestamp != nil || !n.stopUntil.IsZero() || n.now.Before(n.silent) ||
		n.listed != isReady(n.pod) || n.pod.Generation != n.seen
}

// step is one second of the kubelet.
func (n *node) step() {
	switch {
	case n.pod == nil || n.now.Before(n.silent) || n.now.Before(n.stopUntil):
	case n.pod.DeletionTimestamp != nil:
		n.stepDeletion()
	case !n.stopUntil.IsZero():
		n.stopUntil = time.Time{}
		n.startContainer()
	default:
		n.sync()
	}
}

func (n *node) stepDeletion() {
	if n.now.Before(n.pod.DeletionTimestamp.Add(n.stopTime)) {
		return
	}
	n.say("%s is gone", n.pod.Name)
	n.pod, n.running, n.seen, n.listed, n.stopUntil = nil, "", 0, false, time.Time{}
}

func (n *node) sync() {
	n.publishReadiness()
	if n.seen != n.pod.Generation {
		n.seen, n.wanted = n.pod.Generation, n.pod.Spec.Containers[0].Image
		if !n.old {
			n.pod.Status.ObservedGeneration = n.seen
			n.written()
		}
		switch n.running {
		case n.wanted:
			n.say("kubelet: %s runs what it should already", n.pod.Name)
		case "":
			n.startContainer()
		default:
			n.stopContainer()
		}
	}
}

// stopContainer is where a drain proves its worth: whatever was written and
// read before, no traffic reaches a container that is about to stop.
func (n *node) stopContainer() {
	n.t.Helper()
	drained := n.drains() && !n.keptReady
	if drained && (isReady(n.pod) || n.listed) {
		n.fail("%s serves while its container is stopped", n.pod.Name)
	}
	if out := unreadySince(n.pod); drained && n.now.Before(out.Add(n.workload.Target.GracePeriod)) {
		n.fail("the container of %s is stopped %s after it left service", n.pod.Name, n.now.Sub(out))
	}
	n.say("kubelet: %s stops %s", n.pod.Name, n.running)
	n.stopUntil = n.now.Add(n.stopTime)
}

// startContainer starts a container of the image that the kubelet works on.
func (n *node) startContainer() {
	last := observedOf(n.pod, builders.Start).container("main").status.ContainerID
	status := corev1.ContainerStatus{Name: "main", ImageID: observedOf(n.pod, builders.Start).container("main").status.ImageID}
	n.running = ""
	switch {
	case strings.HasSuffix(n.wanted, ":missing"):
		n.say("kubelet: %s cannot pull %s", n.pod.Name, n.wanted)
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "cannot pull " + n.wanted}
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: last}
	case strings.HasSuffix(n.wanted, ":crash"):
		n.containers++
		n.say("kubelet: %s crashes with %s", n.pod.Name, n.wanted)
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting"}
		status.ContainerID, status.ImageID = n.containerID(), builders.ImageID(n.wanted)
	default:
		n.containers++
		n.say("kubelet: %s runs %s", n.pod.Name, n.wanted)
		n.running, n.started = n.wanted, n.now
		status = builders.RunningContainer("main", fmt.Sprintf("main-%d", n.containers), n.wanted, n.now)
	}
	n.pod.Status.Phase = corev1.PodRunning
	n.pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	n.written()
	n.publishReadiness()
}

func (n *node) containerID() string {
	return fmt.Sprintf("containerd://main-%d", n.containers)
}

// crash restarts the running container by itself, from the image it had; but not
// between a change and the moment at which the kubelet sees it. What starts then
// is the one thing that the evidence takes for what it is not, see judge.
func (n *node) crash() {
	if n.pod == nil || n.pod.DeletionTimestamp != nil || n.running == "" || !n.stopUntil.IsZero() || n.pod.Generation != n.seen {
		return
	}
	n.containers++
	n.started = n.now
	n.say("kubelet: %s restarts by itself", n.pod.Name)
	n.pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		builders.RunningContainer("main", fmt.Sprintf("main-%d", n.containers), n.running, n.now),
	}
	n.written()
	n.publishReadiness()
}

// ask has a ContainerRecreateRequest ask for a restart of the container.
func (n *node) ask() {
	n.t.Helper()
	if n.pod == nil || n.pod.DeletionTimestamp != nil {
		return
	}
	n.version++
	n.request, n.askedOf, n.askedAt = types.UID(fmt.Sprintf("request-%d", n.version)), n.pod.UID, n.containers
	raw, err := json.Marshal(appsv1beta1.PodRecreateRequest{Name: "again", UID: n.request, Containers: []string{"main"}})
	n.Expect(err).NotTo(HaveOccurred())
	n.pod = n.pod.DeepCopy()
	n.pod.Annotations = withValues(n.pod.Annotations, map[string]string{appsv1beta1.RecreateRequestAnnotation: string(raw)})
	n.say("user: restart %s, %s", n.pod.Name, n.request)
	n.written()
}

// isGiven reports whether the container was restarted for the last request, if the pod that it was
// about is still there.
func (n *node) isGiven() bool {
	if n.pod == nil || n.askedOf != n.pod.UID {
		return true
	}
	done := RestartedOnRequest(n.pod)
	return done != nil && done.UID == n.request && n.containers > n.askedAt
}

// publishReadiness sets the Ready condition to what containers and gate say, as far as the
// API server lets the kubelet.
func (n *node) publishReadiness() {
	ready := n.running != "" && !n.now.Before(n.started.Add(n.readyTime))
	if n.setCondition(corev1.ContainersReady, ready) {
		n.written()
	}
	if n.gated {
		ready = ready && condition(n.pod, appsv1beta1.InPlaceUpdateReady).Status == corev1.ConditionTrue
	}
	n.setReady(ready && !HasDrainedLabel(n.pod))
}

func (n *node) setReady(ready bool) {
	if !n.setCondition(corev1.PodReady, ready) {
		return
	}
	n.written()
	words := map[bool]string{true: "is ready", false: "is not ready"}
	n.say("kubelet: %s %s", n.pod.Name, words[ready])
}

// setCondition sets a condition of the pod, and reports whether it was another one.
func (n *node) setCondition(kind corev1.PodConditionType, is bool) bool {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	if condition(n.pod, kind).Status == status {
		return false
	}
	others := slices.DeleteFunc(slices.Clone(n.pod.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type == kind })
	others = append(others, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(n.now)})
	n.pod.Status.Conditions = others
	return true
}

// stepEndpoints lets the EndpointSlices follow the pod's readiness.
func (n *node) stepEndpoints() {
	ready := n.pod != nil && isReady(n.pod)
	switch {
	case ready == n.listed:
		n.unequally = time.Time{}
	case n.unequally.IsZero():
		n.unequally = n.now
	}
	if ready != n.listed && !n.now.Before(n.unequally.Add(n.listTime)) {
		n.listed, n.unequally = ready, time.Time{}
		words := map[bool]string{true: "is listed", false: "is no longer listed"}
		n.say("service: %s %s", n.pod.Name, words[ready])
	}
}

// describe says what became of the pod.
func (n *node) describe() string {
	condition := map[bool]string{true: "ready", false: "not ready"}[isReady(n.pod)]
	return fmt.Sprintf("%s at %s, %s, pod number %d, container number %d",
		n.pod.Name, RevisionOf(n.pod), condition, n.incarnation, n.containers)
}
