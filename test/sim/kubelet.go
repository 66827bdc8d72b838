// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// kubelet runs the pods of one node, as the real one does as far as an operator
// can tell. A pod has one worker, which does one thing after the other: it
// publishes the generation that it has seen together with the statuses from
// before, stops the containers that do not match that generation, and starts them
// again from that generation. Until then it sees nothing newer; and then what it sees
// and shows may be behind (kubelet_view.go). The conformance suite (test/e2e) runs the
// same stories on both.
type kubelet struct {
	world *World
	node  string
	// silentUntil: it does nothing before; dead: the node is gone.
	silentUntil time.Time
	deadSince   time.Time
	// unready: it says of its node that it is not ready.
	unready bool
	// old: it reports no observed generation, as before Kubernetes 1.34.
	old     bool
	workers map[types.UID]*worker
	images  imageStore
	// cpu is what pods may have of it, in thousandths, others what those have that
	// are not of the set; 0 for a node without a bound.
	cpu, others int64
}

// worker is what a kubelet knows of one pod.
type worker struct {
	kubelet *kubelet
	uid     types.UID
	name    string
	// seen is the generation that it works on, wanted the images in it, levels what
	// containers that read it get from the pod's annotation, and asks what the pod asks
	// to be restarted.
	seen   int64
	wanted map[string]string
	levels map[string]string
	asks   asked
	// running holds the containers, by name; gone once they were stopped.
	running map[string]*container
	// stopping are being stopped until stopUntil; ours are those among them that the operator
	// has changed.
	stopping, ours []string
	stopUntil      time.Time
	// idleAt is the version of the pod at which there was nothing left to do.
	idleAt string
	// endsAt is when the pod, which is being deleted, is gone.
	endsAt time.Time
	size   sized
	// mounted: its volumes are.
	mounted bool
	volumes []*volume
}

// container is a container that was started, or that cannot be.
type container struct {
	id, image string
	// level is what its environment read when it was started.
	level string
	// asked is what asked for its restart then.
	asked asked
	// ran is the image that the container with this ID was started from, which is
	// not the present one while that cannot be had.
	ran      string
	started  time.Time
	restarts int32
	// size is what it was started with.
	size corev1.ResourceRequirements
	// waiting is why it does not run; retryAt when it is tried again, tries how
	// often it was. Until it is tried, it may show no more than that it ended.
	waiting string
	ended   bool
	retryAt time.Time
	tries   int
	// crashed: it ended by itself at least once.
	crashed bool
	// silent: it answers no probe, because it was stopped.
	silent bool
}

func newKubelet(w *World, node string, old bool) *kubelet {
	return &kubelet{world: w, node: node, old: old, workers: map[types.UID]*worker{}, images: newImageStore()}
}

func (k *kubelet) isDead() bool { return !k.deadSince.IsZero() }

// step is one second.
func (k *kubelet) step() {
	now := k.world.clock.Now()
	if k.isDead() || now.Before(k.silentUntil) {
		return
	}
	there := map[types.UID]bool{}
	for _, name := range slices.Sorted(maps.Keys(all[*corev1.Pod](k.world.server))) {
		pod, _ := get[*corev1.Pod](k.world.server, name)
		if pod.Spec.NodeName != k.node || pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil {
			continue
		}
		there[pod.UID] = true
		k.worker(pod).step(pod)
		k.worker(pod).growVolumes(pod)
	}
	maps.DeleteFunc(k.workers, func(uid types.UID, _ *worker) bool { return !there[uid] })
	k.pull()
}

func (k *kubelet) worker(pod *corev1.Pod) *worker {
	if k.workers[pod.UID] == nil {
		k.workers[pod.UID] = &worker{
			kubelet: k, uid: pod.UID, name: pod.Name,
			running: map[string]*container{},
		}
	}
	return k.workers[pod.UID]
}

func (w *worker) now() time.Time { return w.kubelet.world.clock.Now() }

func (w *worker) say(format string, args ...any) {
	w.kubelet.world.say("kubelet: "+w.name+" "+format, args...)
}

func (w *worker) step(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		w.end(pod)
	case w.now().Before(w.stopUntil):
		w.probeStopped()
	case len(w.stopping) > 0:
		w.restart()
		// What was started may be published with the next generation only.
		if len(w.stopping) == 0 && !w.kubelet.world.choices.oneIn(3) {
			w.publish()
		}
	default:
		w.sync(pod)
	}
}

// end stops a pod that is being deleted, and removes it.
func (w *worker) end(pod *corev1.Pod) {
	if w.endsAt.IsZero() {
		w.endsAt = w.now().Add(w.kubelet.world.stopTime())
		if latest := pod.DeletionTimestamp.Time; latest.Before(w.endsAt) {
			w.endsAt = latest
		}
	}
	if w.now().Before(w.endsAt) || ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return
	}
	if len(pod.Finalizers) > 0 {
		w.say("has ended")
		mutate(w.kubelet.world.server, w.name, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			setPodCondition(pod, corev1.PodReady, false, w.now())
		})
	} else {
		w.say("is gone")
	}
	w.kubelet.world.server.finish(objectKey{"Pod", w.name})
}

// sync sees the pod as it is, and acts on what it sees.
func (w *worker) sync(pod *corev1.Pod) {
	if pod.ResourceVersion == w.idleAt && !w.isContradicted(pod) {
		return
	}
	if !w.admit(pod) {
		return
	}
	pod = w.view(pod)
	w.levels, w.asks = levels(pod), restartsAsked(pod.Annotations)
	isNew := w.seen != pod.Generation
	if isNew {
		w.seen, w.wanted = pod.Generation, images(pod)
		w.admitCrashLoops()
	}
	overtaken := false
	if w.grant(pod) || isNew {
		if overtaken = w.isOvertaken(); !overtaken {
			w.publish()
		}
	}
	w.ours = nil
	for _, name := range slices.Sorted(maps.Keys(w.wanted)) {
		c := w.running[name]
		if c == nil || c.waiting != "" {
			continue
		}
		resized := w.mustRestart(pod, name)
		if c.image != w.wanted[name] || len(resized) > 0 {
			w.stopping = append(w.stopping, name)
		}
		isOwn := w.kubelet.world.isOwnWork(pod, resized)
		switch {
		case c.image != w.wanted[name], w.kubelet.world.isOwnWork(pod, w.atOnce(name, resized)):
			w.ours = append(w.ours, name)
		case len(resized) > 0 && !isOwn:
			c.crashed = true // the resize of another client restarts it
		}
	}
	if len(w.stopping) > 0 {
		w.kubelet.world.checkDrained(pod, w.ours)
		w.say("stops %v", w.stopping)
		w.stopUntil = w.now().Add(w.kubelet.world.stopTime())
		return
	}
	w.makeSizes()
	w.admitCrashLoops()
	if w.mount(pod) {
		w.startMissing()
	}
	if !overtaken {
		w.publish()
	}
}

// isContradicted reports whether the kubelet says once more, as it does every 10 s, that a
// pod is ready of which the API server has stored that it is not.
func (w *worker) isContradicted(pod *corev1.Pod) bool {
	return hasDrainedLabel(pod) && conditionIs(pod, corev1.PodReady, corev1.ConditionFalse) && w.now().Unix()%10 == 0
}

// admitCrashLoops lets containers show why they are not started again, sooner or
// later.
func (w *worker) admitCrashLoops() {
	for _, name := range slices.Sorted(maps.Keys(w.running)) {
		if c := w.running[name]; c.ended {
			c.ended = w.kubelet.world.choices.oneIn(3)
		}
	}
}

// restart starts what was stopped, from the images that it saw; sometimes one
// after the other.
func (w *worker) restart() {
	for len(w.stopping) > 0 {
		w.start(w.stopping[0])
		w.stopping = w.stopping[1:]
		if len(w.stopping) > 0 && w.kubelet.world.choices.oneIn(3) {
			w.stopUntil = w.now().Add(time.Second)
			return
		}
	}
	w.stopUntil = time.Time{}
}

// startMissing starts what does not run, what is to be tried again, and lets
// containers crash that do.
func (w *worker) startMissing() {
	for _, name := range slices.Sorted(maps.Keys(w.wanted)) {
		c := w.running[name]
		switch {
		case c == nil || c.waiting != "" && (c.image != w.wanted[name] || !w.now().Before(c.retryAt)):
			w.start(name)
		case c.waiting == "" && w.crashes(name) && w.now().After(c.started):
			w.say("%s crashes", name)
			w.backOff(c)
		}
	}
}

// backOff lets a container wait that has crashed; after the first time, only for
// its turn.
func (w *worker) backOff(c *container) {
	c.waiting, c.retryAt, c.crashed = "CrashLoopBackOff", w.now(), true
	c.ended = c.tries == 0 || w.kubelet.world.choices.oneIn(2)
	if c.tries > 0 {
		c.retryAt = w.now().Add(time.Duration(5<<min(c.tries, 5)) * time.Second)
	}
	c.tries++
}

// start starts a container, if it has an image.
func (w *worker) start(name string) {
	image, before := w.wanted[name], w.running[name]
	c := &container{image: image}
	if before != nil {
		c.id, c.ran, c.restarts, c.started, c.level = before.id, before.ran, before.restarts, before.started, before.level
		c.size, c.asked = before.size, before.asked
		c.crashed = before.crashed
		if before.image == image {
			c.tries = before.tries
		}
	}
	if isImage(image, missingImage) {
		c.waiting, c.retryAt = "ImagePullBackOff", w.now().Add(10*time.Second)
		if before == nil || before.image != image {
			w.say("cannot pull %s", image)
		}
	} else {
		if c.id != "" {
			c.restarts++
		}
		w.kubelet.images.has.Insert(contentOf(image))
		w.kubelet.world.containers++
		c.id = fmt.Sprintf("containerd://c%d", w.kubelet.world.containers)
		c.ran, c.started, c.level, c.asked = image, w.now(), w.levels[name], w.asks
		c.size, w.size.actual[name] = w.size.granted[name], w.size.granted[name]
		w.say("runs %s from %s%s", name, image, c.level)
	}
	w.running[name] = c
}

// crash restarts a running container from the image that it has; but not between
// a change and the moment at which the kubelet sees it: see the comment on what
// the evidence takes for what it is not in inplace/completion.go.
func (w *worker) crash(name string) {
	c := w.running[name]
	pod, ok := get[*corev1.Pod](w.kubelet.world.server, w.name)
	if !ok || pod.Generation != w.seen || c == nil || c.waiting != "" || slices.Contains(w.stopping, name) {
		return
	}
	if w.kubelet.world.choices.oneIn(2) {
		w.levels, w.asks = levels(pod), restartsAsked(pod.Annotations)
	}
	c.level, c.asked, c.crashed = w.levels[name], w.asks, true
	c.size, w.size.actual[name] = w.size.granted[name], w.size.granted[name]
	w.say("%s restarts by itself%s", name, c.level)
	w.kubelet.world.containers++
	c.id = fmt.Sprintf("containerd://c%d", w.kubelet.world.containers)
	c.started = w.now()
	c.restarts++
	w.publish()
}

// publish writes the status of the pod.
func (w *worker) publish() {
	mutate(w.kubelet.world.server, w.name, func(pod *corev1.Pod) {
		if !w.kubelet.old {
			pod.Status.ObservedGeneration = w.seen
		}
		started := false
		pod.Status.ContainerStatuses = nil
		pod.Status.InitContainerStatuses = nil
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, w.status(c.Name))
			started = started || w.running[c.Name] != nil && w.running[c.Name].id != ""
		}
		for _, c := range pod.Spec.InitContainers {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, w.sidecarStatus(c.Name))
		}
		if started {
			pod.Status.Phase = corev1.PodRunning
		}
		w.reportResize(pod)
		w.judge(pod)
	})
	w.idleAt = ""
	if pod, ok := get[*corev1.Pod](w.kubelet.world.server, w.name); ok && pod.Generation == w.seen && w.areReady() && w.hasSize() {
		w.idleAt = pod.ResourceVersion
	}
}

// areReady reports whether every container runs what it should, and is ready.
func (w *worker) areReady() bool {
	for name, image := range w.wanted {
		if c := w.running[name]; !w.isReady(name) || c.image != image {
			return false
		}
	}
	return len(w.wanted) > 0
}

func (w *worker) status(name string) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: name, State: waitingFor("ContainerCreating")}
	c := w.running[name]
	if c == nil {
		return status
	}
	status.Image, status.RestartCount = c.image, c.restarts
	w.reportSizes(&status)
	if c.id != "" {
		status.ContainerID = c.id
		status.ImageID = imageID(c.ran)
	}
	if c.waiting != "" {
		status.State = waitingFor(c.waiting)
		if c.id != "" {
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: c.id, ExitCode: 1, StartedAt: metav1.NewTime(c.started)}
		}
		if c.ended {
			status.State, status.LastTerminationState = status.LastTerminationState, corev1.ContainerState{}
		}
		return status
	}
	status.Started = ptr.To(true)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}}
	status.Ready = w.isReady(name)
	return status
}

// sidecarStatus is the status of a sidecar. Of one that was stopped, the kubelet
// does not say why it does not run again.
func (w *worker) sidecarStatus(name string) corev1.ContainerStatus {
	status := w.status(name)
	if stopped := status.LastTerminationState.Terminated; stopped != nil && isImage(w.running[name].image, missingImage) {
		stopped.ExitCode = 0
		status.State, status.LastTerminationState = status.LastTerminationState, corev1.ContainerState{}
	}
	return status
}

func waitingFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "as simulated"}}
}

// isReady reports whether a container passes its readiness probe.
func (w *worker) isReady(name string) bool {
	c := w.running[name]
	if c == nil || c.waiting != "" || c.silent || w.crashes(name) {
		return false
	}
	takes := w.kubelet.world.settings.readyTime
	if name == w.kubelet.world.settings.slow {
		takes += slowTime
	}
	return !w.now().Before(c.started.Add(takes))
}

// judge sets the conditions that the kubelet owns.
func (w *worker) judge(pod *corev1.Pod) {
	ready := len(w.wanted) > 0
	for name := range w.wanted {
		ready = ready && w.isReady(name)
	}
	setPodCondition(pod, corev1.ContainersReady, ready, w.now())
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && conditionIs(pod, gate.ConditionType, corev1.ConditionTrue)
	}
	setPodCondition(pod, corev1.PodReady, ready, w.now())
}

// rebooted starts everything again, from what the pods say now: the machine was
// started again.
func (k *kubelet) rebooted() {
	k.deadSince = time.Time{}
	byName := func(a, b *worker) int { return strings.Compare(a.name, b.name) }
	for _, w := range slices.SortedFunc(maps.Values(k.workers), byName) {
		w.stopping, w.stopUntil = nil, time.Time{}
		pod, ok := get[*corev1.Pod](k.world.server, w.name)
		if !ok || pod.UID != w.uid {
			continue
		}
		w.seen, w.wanted, w.levels, w.asks = pod.Generation, images(pod), levels(pod), restartsAsked(pod.Annotations)
		w.grant(pod)
		for _, name := range slices.Sorted(maps.Keys(w.running)) {
			w.running[name].crashed = true
			w.start(name)
		}
		w.publish()
	}
}

// images returns what the pod wants its containers to run, by container.
func images(pod *corev1.Pod) map[string]string {
	wanted := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		wanted[c.Name] = c.Image
	}
	return wanted
}

// levels returns what the environment of containers that read it says, by
// container.
func levels(pod *corev1.Pod) map[string]string {
	found := map[string]string{}
	for _, c := range pod.Spec.Containers {
		for _, env := range c.Env {
			if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
				found[c.Name] += fmt.Sprintf(", %s=%s", env.Name, pod.Annotations[levelKey])
			}
		}
	}
	return found
}
