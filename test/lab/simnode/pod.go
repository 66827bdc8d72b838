// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runtime is what a simulated kubelet and its container runtime hold of one
// pod. It has no client and no clock: Step is a function of the pod, of the
// facts and of what Runtime holds.
type Runtime struct {
	timing Timing
	hostIP string
	podIP  string

	knobs      knobs
	startTime  metav1.Time
	sandbox    bool
	containers map[string]*container
	// allocated are the resources the node has promised to each container.
	allocated map[string]corev1.ResourceRequirements
	resize    resizeConditions

	// work is the sync in progress, nil if the kubelet is idle.
	work     *work
	failures failures
	crashes  backoffs
	pulls    backoffs
	// pullErrors are the errors of the last pulls, by the keys of pulls.
	pullErrors map[string]string
	// again is when a sync is due that no other event would cause.
	again time.Time

	status   corev1.PodStatus
	finished bool
}

// NewRuntime returns the Runtime of a pod that a node is to run. The addresses
// are those the pod reports once its sandbox is there.
func NewRuntime(timing Timing, hostIP, podIP string) *Runtime {
	timing = timing.withDefaults()
	newBackoffs := func() backoffs {
		return backoffs{first: timing.Backoff, max: timing.MaxBackoff, entries: map[string]backoff{}}
	}
	return &Runtime{
		timing:     timing,
		hostIP:     hostIP,
		podIP:      podIP,
		containers: map[string]*container{},
		allocated:  map[string]corev1.ResourceRequirements{},
		failures:   failures{},
		crashes:    newBackoffs(),
		pulls:      newBackoffs(),
		pullErrors: map[string]string{},
	}
}

// Facts is what Step needs to know besides the pod.
type Facts struct {
	Now time.Time
	// Image returns what a reference is pulled as, or why it cannot be.
	Image func(ref string) (Image, error)
	// Fits returns nil if the node can hold the requests beside those of all
	// other pods, or why not.
	Fits func(requests corev1.ResourceList) error
}

// Outcome is what a step leads to.
type Outcome struct {
	// Status is what the kubelet publishes now. Conditions that others own are
	// as they were when the last sync began.
	Status corev1.PodStatus
	// Wake is when something will happen by itself, zero if nothing will.
	Wake time.Time
	// Finished means that the pod was deleted and all its containers have
	// ended: it may be removed from the API server.
	Finished bool
	// Invalid names annotations that say nothing known; they are ignored.
	Invalid error
}

// work is one sync of a pod: a version of its spec, and what is being done to
// get there. The spec does not change until all is done.
type work struct {
	pod        *corev1.Pod
	operations []operation
	until      time.Time // when operations[0] is done
	killsPod   bool
}

// operation is something that takes time. Operations are done one after the
// other.
type operation struct {
	name  string
	takes time.Duration
	done  func(at time.Time)
}

// Step brings the simulation to facts.Now and returns what can be seen of the
// pod then. It must be called when the pod changes and at Outcome.Wake; more
// calls do no harm.
func (r *Runtime) Step(pod *corev1.Pod, facts Facts) Outcome {
	var invalid error
	r.knobs, invalid = readKnobs(pod.Annotations)
	r.endByThemselves(facts.Now)
	r.shortenGrace(pod, facts.Now)
	for r.work != nil || r.sync(pod, facts) {
		if !r.proceed(facts.Now) {
			break
		}
	}
	if r.work != nil {
		r.probe(facts.Now)
	}
	return Outcome{
		Status:   *r.status.DeepCopy(),
		Wake:     r.wake(facts.Now),
		Finished: r.finished,
		Invalid:  invalid,
	}
}

// endByThemselves ends the containers whose time has come, also while the
// kubelet is busy.
func (r *Runtime) endByThemselves(now time.Time) {
	for _, c := range r.containers {
		if c.running() && !c.exitAt.IsZero() && !now.Before(c.exitAt) {
			c.end(c.exitAt, c.exitCode)
		}
	}
}

// sync begins a sync of the pod if the kubelet is idle, and tells whether it
// has to do anything that takes time. The status is generated first: it shows
// the generation of this sync, and the containers as the one before left them.
func (r *Runtime) sync(pod *corev1.Pod, facts Facts) bool {
	if r.finished {
		return false
	}
	r.again = time.Time{}
	allocated := r.allocate(pod, facts)
	r.failures.show(facts.Now)
	r.status = r.generate(allocated, facts.Now)
	operations, killsPod := r.plan(allocated, facts)
	if len(operations) == 0 {
		return false
	}
	r.work = &work{pod: allocated, operations: operations, killsPod: killsPod}
	r.work.until = facts.Now.Add(operations[0].takes)
	return true
}

// proceed completes the operation in progress and tells whether it was due.
func (r *Runtime) proceed(now time.Time) bool {
	if now.Before(r.work.until) {
		return false
	}
	at := r.work.until
	r.work.operations[0].done(at)
	r.work.operations = r.work.operations[1:]
	if len(r.work.operations) == 0 {
		r.work = nil
		return true
	}
	r.work.until = at.Add(r.work.operations[0].takes)
	return true
}

// plan returns what a sync has to do, and whether that ends the pod.
func (r *Runtime) plan(pod *corev1.Pod, facts Facts) (operations []operation, killsPod bool) {
	switch {
	case pod.DeletionTimestamp != nil:
		return append(r.killAll(pod), r.finish(pod)), true
	case isTerminal(r.status.Phase):
		return r.killAll(pod), false
	case !r.sandbox:
		operations = append(operations, r.createSandbox(pod))
	}
	actions := r.computeActions(pod, facts.Now)
	if actions.killPod {
		return r.killAll(pod), false
	}
	for _, spec := range actions.kill {
		operations = append(operations, r.kill(pod, spec))
	}
	operations = append(operations, r.applyResize(actions)...)
	for _, spec := range actions.start {
		operations = append(operations, r.start(pod, spec, facts)...)
	}
	return operations, false
}

func (r *Runtime) createSandbox(pod *corev1.Pod) operation {
	return operation{name: "create sandbox", takes: r.timing.Sandbox, done: func(at time.Time) {
		r.sandbox = true
		// Only this condition is published at once, the IP comes with the next sync.
		setCondition(&r.status, corev1.PodCondition{
			Type:               corev1.PodReadyToStartContainers,
			Status:             corev1.ConditionTrue,
			ObservedGeneration: pod.Generation,
			LastTransitionTime: seconds(at),
		})
	}}
}

// start returns what starts a container: nothing while a backoff lasts. As in
// the kubelet, the backoff counts from the last container that had ended when
// the sync began, also if this sync has just killed a later one.
func (r *Runtime) start(pod *corev1.Pod, spec *corev1.Container, facts Facts) []operation {
	previous := r.containers[spec.Name]
	ended := previous.lastEnd()
	if ended != nil && r.inCrashBackoff(pod, spec, ended.FinishedAt.Time, facts.Now) {
		return nil
	}
	if r.inPullBackoff(pod, spec, facts.Now) {
		return nil
	}
	return []operation{{name: "start " + spec.Name, takes: r.timing.Start, done: func(at time.Time) {
		if ended != nil {
			r.crashes.fail(crashKey(pod, spec), ended.FinishedAt.Time, at)
		}
		image, err := facts.Image(spec.Image)
		if err != nil {
			r.pulls.fail(pullKey(pod, spec), at, at)
			r.pullErrors[pullKey(pod, spec)] = err.Error()
			r.failures.add(spec.Name, corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: err.Error()}, at)
			return
		}
		delete(r.failures, spec.Name)
		r.containers[spec.Name] = r.newContainer(pod, spec, previous, image, at)
	}}}
}

// wakeAt asks for a sync at a moment, or earlier if one is due earlier.
func (r *Runtime) wakeAt(at time.Time) {
	if r.again.IsZero() || at.Before(r.again) {
		r.again = at
	}
}

// wake returns the first moment after now at which something happens.
func (r *Runtime) wake(now time.Time) time.Time {
	var first time.Time
	consider := func(at time.Time) {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if r.finished {
		return first
	}
	consider(r.again)
	if r.work != nil {
		consider(r.work.until)
	}
	for _, failure := range r.failures {
		consider(failure.nextAt)
	}
	for _, c := range r.containers {
		if c.running() {
			consider(c.exitAt)
			consider(c.startupDone)
			consider(c.readyAt)
		}
	}
	return first
}
