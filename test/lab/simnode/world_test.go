// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// world is one pod, its simulated kubelet, and an API server that is no more
// than the pod itself. Time moves only when a test says so.
type world struct {
	*WithT
	t       *testing.T
	pod     *corev1.Pod
	runtime *Runtime
	images  *imageStore
	clock   *clocktesting.FakePassiveClock
	fits    error
	// seen are the statuses published so far, one line each, without repeats.
	seen    []string
	outcome Outcome
}

// tick is how long everything takes in a world.
const tick = 100 * time.Millisecond

func newWorld(t *testing.T, pod *corev1.Pod) *world {
	t.Helper()
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	timing := Timing{
		Sandbox: tick, Start: tick, Stop: tick, Ready: tick, Init: tick, Resize: tick,
		Crash: time.Second, Resync: time.Second,
	}
	w := &world{
		WithT:   NewWithT(t),
		t:       t,
		pod:     pod,
		runtime: NewRuntime(timing, "192.0.2.1", "198.51.100.1"),
		images: &imageStore{
			digestOf: nameDigest(map[string]string{"nginx:stable": "nginx:latest"}),
			clock:    now,
			pulled:   map[string]*pulledImage{},
			resolved: map[string]resolvedRef{},
		},
		clock: now,
	}
	w.step()
	return w
}

// step lets the simulated kubelet look at the pod, and writes what it publishes.
func (w *world) step() {
	for _, spec := range allContainers(w.pod) {
		w.images.pull(w.t.Context(), spec.Image)
	}
	w.outcome = w.runtime.Step(w.pod.DeepCopy(), Facts{
		Now:   w.clock.Now(),
		Image: w.images.image,
		Fits:  func(corev1.ResourceList) error { return w.fits },
	})
	w.pod.Status = mergeStatus(w.pod.Status, w.outcome.Status)
	if line := summary(w.pod); len(w.seen) == 0 || w.seen[len(w.seen)-1] != line {
		w.seen = append(w.seen, line)
	}
}

// pass lets time pass, stepping whenever the kubelet asks for it.
func (w *world) pass(duration time.Duration) {
	end := w.clock.Now().Add(duration)
	for !w.outcome.Wake.IsZero() && !w.outcome.Wake.After(end) {
		w.clock.SetTime(w.outcome.Wake)
		w.step()
	}
	w.clock.SetTime(end)
	w.step()
}

// update changes the spec, which makes a new generation.
func (w *world) update(change func(spec *corev1.PodSpec)) {
	change(&w.pod.Spec)
	w.pod.Generation++
	w.step()
}

func (w *world) setImage(container, image string) {
	w.update(func(*corev1.PodSpec) {
		for _, spec := range allContainers(w.pod) {
			if spec.Name == container {
				spec.Image = image
			}
		}
	})
}

func (w *world) annotate(key, value string) {
	metav1.SetMetaDataAnnotation(&w.pod.ObjectMeta, key, value)
	w.step()
}

// delete marks the pod as deleted, which makes a new generation.
func (w *world) delete(graceSeconds int64) {
	now := metav1.NewTime(w.clock.Now())
	w.pod.DeletionTimestamp, w.pod.DeletionGracePeriodSeconds = &now, &graceSeconds
	w.pod.Generation++
	w.step()
}

// status returns the status of a container of either kind.
func (w *world) status(container string) corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{w.pod.Status.InitContainerStatuses, w.pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if status.Name == container {
				return status
			}
		}
	}
	return corev1.ContainerStatus{}
}

func (w *world) condition(kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range w.pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// newPod returns a pod of containers, given as name and image.
func newPod(namesAndImages ...string) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "sample-0", Namespace: "default", UID: "1234", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:                      "sim-1",
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &grace,
		},
	}
	for i := 0; i < len(namesAndImages); i += 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: namesAndImages[i], Image: namesAndImages[i+1],
		})
	}
	return pod
}

// summary says in one line what an operator reads of a pod: the generation, the
// phase, each container, and the conditions that are true.
func summary(pod *corev1.Pod) string {
	status := pod.Status
	parts := []string{fmt.Sprintf("%d/%d %s", status.ObservedGeneration, pod.Generation, status.Phase)}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for _, c := range statuses {
			parts = append(parts, summarize(c))
		}
	}
	var conditions []string
	for _, condition := range status.Conditions {
		if condition.Status == corev1.ConditionTrue && condition.Type != corev1.PodScheduled {
			conditions = append(conditions, strings.TrimPrefix(string(condition.Type), "PodReadyTo"))
		}
	}
	return strings.Join(append(parts, strings.Join(conditions, " ")), " | ")
}

func summarize(c corev1.ContainerStatus) string {
	state := describe(c.State)
	if c.Ready {
		state += " ready"
	}
	if c.RestartCount > 0 {
		state += fmt.Sprintf(" restarts=%d", c.RestartCount)
	}
	if c.LastTerminationState.Terminated != nil {
		state += " last=" + describe(c.LastTerminationState)
	}
	if tag := tagOf(c.Image); c.ImageID != "" {
		state += " " + tag
	}
	return c.Name + " " + state
}

func describe(state corev1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running"
	case state.Terminated != nil:
		return fmt.Sprintf("%s(%d)", state.Terminated.Reason, state.Terminated.ExitCode)
	case state.Waiting != nil:
		return state.Waiting.Reason
	}
	return "nothing"
}
