// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sized is what a worker knows of the size of its pod: a change is granted first,
// as a whole, and made later.
type sized struct {
	// granted is what the node has set aside, actual what the containers have.
	granted, actual sizes
	// refused are the sizes that were not granted, and pending says why.
	refused sizes
	pending *corev1.PodCondition
	// waited is what had to wait for room before something was granted, that or more;
	// nil if nothing had. The pod serves meanwhile.
	waited sizes
	// progress tells that what was granted is still to be made; from actsAt on.
	progress *corev1.PodCondition
	actsAt   time.Time
	// heldUntil: until then a container uses more memory than it is to have.
	heldUntil time.Time
}

// leastMemory is what a container needs: below, it is killed.
var leastMemory = resource.MustParse("16Mi")

// unlimited is what the kubelet says of a pod that has no limit as a whole.
var unlimited = resource.MustParse("9007199254740988Ki")

// room returns how much CPU is left on the node, in thousandths, for a pod that has
// none of it yet. What a pod has or shall have counts for the scheduler, only what it
// has for the kubelet, and where it is known to be infeasible.
func (k *kubelet) room(except *corev1.Pod, planned bool) int64 {
	left := k.cpu - k.others
	for _, pod := range all[*corev1.Pod](k.world.server) {
		if pod.Spec.NodeName != k.node || pod.UID == except.UID || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		wanted := sizesOf(&pod.Spec).cpu()
		if w := k.workers[pod.UID]; w != nil && w.size.granted != nil {
			granted := w.size.granted.cpu()
			if !planned || w.size.pending != nil && w.size.pending.Reason == corev1.PodReasonInfeasible {
				wanted = granted
			}
			wanted = max(wanted, granted)
		}
		left -= wanted
	}
	return left
}

// hasRoom reports whether the scheduler may put a pod on the node.
func (k *kubelet) hasRoom(pod *corev1.Pod) bool {
	return k.cpu == 0 || sizesOf(&pod.Spec).cpu() <= k.room(pod, true)
}

// tellUnschedulable lets the scheduler say of a pod that it finds no room for it.
func (w *World) tellUnschedulable(name string) {
	if w.settings.resizes.cpu == 0 {
		return
	}
	mutate(w.server, name, func(pod *corev1.Pod) {
		c := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}
		if pod.Spec.NodeName == "" {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/2 nodes are available: Insufficient cpu"
		}
		putCondition(pod, corev1.PodScheduled, c)
	})
}

// grant sets aside what a pod wants, if it can; it reports whether anything changed
// that is to be shown at once.
func (w *worker) grant(pod *corev1.Pod) bool {
	s, wanted := &w.size, sizesOf(&pod.Spec)
	if s.granted == nil {
		s.granted, s.actual = wanted, sizes{}
		if whole, ok := wanted[""]; ok {
			s.actual[""] = whole
		}
		return false
	}
	if s.granted.equal(wanted) {
		reverted := s.pending != nil
		s.pending, s.refused = nil, nil
		return reverted
	}
	if reason, message := w.refuse(pod, wanted); reason != "" {
		changed := s.pending == nil || !s.refused.equal(wanted) || s.pending.Reason != reason
		if changed {
			w.say("does not grant a resize: %s", message)
			s.pending, s.refused = w.resizeCondition(corev1.PodResizePending, reason, message), wanted
		}
		s.pending.Message = message
		return changed
	}
	w.makeUnshown(pod)
	w.say("grants a resize")
	s.waited = s.refused
	s.pending, s.refused = nil, nil
	s.granted = wanted
	w.skipStopped()
	s.progress = nil
	if !w.isActual() {
		s.progress = w.resizeCondition(corev1.PodResizeInProgress, "", "")
	}
	s.actsAt = w.now().Add(time.Second + w.kubelet.world.choices.seconds(w.kubelet.world.settings.resizes.delay))
	s.heldUntil = time.Time{}
	if w.lowersMemory() != "" && w.kubelet.world.choices.oneIn(3) {
		s.heldUntil = w.now().Add(20*time.Second + w.kubelet.world.choices.seconds(60))
	}
	return true
}

// refuse says why a size cannot be granted; empty if it can.
func (w *worker) refuse(pod *corev1.Pod, wanted sizes) (reason, message string) {
	k := w.kubelet
	if k.cpu == 0 || wanted.cpu() <= w.size.granted.cpu() {
		return "", ""
	}
	if wanted.cpu() > k.cpu {
		return corev1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: cpu, requested: %d, capacity: %d", wanted.cpu(), k.cpu)
	}
	if room := k.room(pod, false); wanted.cpu() > room {
		return corev1.PodReasonDeferred, fmt.Sprintf("Node didn't have enough resource: cpu, requested: %d, used: %d, capacity: %d", wanted.cpu(), k.cpu-room, k.cpu)
	}
	return "", ""
}

func (w *worker) resizeCondition(conditionType corev1.PodConditionType, reason, message string) *corev1.PodCondition {
	c := &corev1.PodCondition{
		Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(w.now()),
	}
	if !w.kubelet.old {
		c.ObservedGeneration = w.seen
	}
	return c
}

// skipStopped makes sizes those of containers that do not run: they have them when
// they are started, which is now.
func (w *worker) skipStopped() {
	for name, c := range w.running {
		if c.waiting != "" {
			if w.hasChanged(name) {
				c.retryAt = w.now()
			}
			w.size.actual[name] = w.size.granted[name]
		}
	}
}

// admit lets a pod fail that the node cannot hold when the kubelet sees it first.
func (w *worker) admit(pod *corev1.Pod) bool {
	k, wanted := w.kubelet, sizesOf(&pod.Spec).cpu()
	if w.size.granted != nil || k.cpu == 0 || wanted <= k.room(pod, false) {
		return true
	}
	w.say("is not admitted: OutOfcpu")
	mutate(k.world.server, w.name, func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "OutOfcpu" })
	return false
}

// hasChanged reports whether a container does not have what was granted.
func (w *worker) hasChanged(name string) bool {
	return !sizes{name: w.size.actual[name]}.equal(sizes{name: w.size.granted[name]})
}

// isActual reports whether all that runs has what was granted.
func (w *worker) isActual() bool {
	for name := range w.running {
		if w.hasChanged(name) {
			return false
		}
	}
	return !w.hasChanged("")
}

// hasSize reports whether nothing is left to do about the size of the pod.
func (w *worker) hasSize() bool {
	return w.size.pending == nil && w.size.progress == nil && w.isActual()
}

// mustRestart returns the numbers for which a container is restarted.
func (w *worker) mustRestart(pod *corev1.Pod, name string) []sizeKey {
	changes := sizes{name: w.size.actual[name]}.changes(sizes{name: w.size.granted[name]})
	return slices.DeleteFunc(changes, func(key sizeKey) bool { return !restartsFor(pod, name, key.resource) })
}

// atOnce returns which of the numbers of a container did not wait for room before they
// were granted.
func (w *worker) atOnce(name string, keys []sizeKey) []sizeKey {
	if w.size.waited == nil {
		return keys
	}
	changed := sizes{name: w.size.waited[name]}.changes(sizes{name: w.size.granted[name]})
	return slices.DeleteFunc(slices.Clone(keys), func(key sizeKey) bool { return !slices.Contains(changed, key) })
}

// willRestart returns the numbers for which a container is to be restarted, seen by
// the kubelet or not. One that waits for room goes on as it is.
func (w *worker) willRestart(pod *corev1.Pod, name string) []sizeKey {
	if w.size.pending != nil {
		return nil
	}
	changes := sizes{name: w.size.actual[name]}.changes(sizes{name: sizesOf(&pod.Spec)[name]})
	return slices.DeleteFunc(changes, func(key sizeKey) bool { return !restartsFor(pod, name, key.resource) })
}

// makeSizes gives containers what was granted, without a restart.
func (w *worker) makeSizes() {
	s := &w.size
	if s.progress == nil || w.now().Before(s.actsAt) {
		return
	}
	if name := w.lowersMemory(); name != "" && (w.now().Before(s.heldUntil) || w.isTooSmall(name)) {
		if s.progress.Reason == "" {
			w.say("cannot lower the memory of %s", name)
			s.progress.Reason = corev1.PodReasonError
		}
		limit := s.granted[name].Limits[corev1.ResourceMemory]
		s.progress.Message = fmt.Sprintf("cannot decrease memory limits: attempting to set container %q memory limit (%d) below current usage (%d)",
			name, limit.Value(), leastMemory.Value()+int64(w.now().Second()/15))
		return
	}
	w.say("has resized")
	maps.Copy(s.actual, s.granted)
}

// makeUnshown makes what was granted before, just before something else is: that may
// have been done, and not been shown.
func (w *worker) makeUnshown(pod *corev1.Pod) {
	if w.size.progress == nil || w.lowersMemory() != "" || !w.kubelet.world.choices.oneIn(2) {
		return
	}
	for name := range w.size.granted {
		if name == "" || len(w.mustRestart(pod, name)) == 0 {
			w.size.actual[name] = w.size.granted[name]
		}
	}
}

// lowersMemory returns a container that runs and is to have less memory than it has;
// empty if there is none.
func (w *worker) lowersMemory() string {
	for _, name := range slices.Sorted(maps.Keys(w.running)) {
		before, limited := w.size.actual[name].Limits[corev1.ResourceMemory]
		after := w.size.granted[name].Limits[corev1.ResourceMemory]
		if limited && w.running[name].waiting == "" && after.Cmp(before) < 0 {
			return name
		}
	}
	return ""
}

// isTooSmall reports whether a container is killed for the memory that it needs.
func (w *worker) isTooSmall(name string) bool {
	limit, limited := w.size.granted[name].Limits[corev1.ResourceMemory]
	return limited && limit.Cmp(leastMemory) < 0
}

// crashes reports whether a container ends soon after it was started.
func (w *worker) crashes(name string) bool {
	limit, limited := w.size.actual[name].Limits[corev1.ResourceMemory]
	return isImage(w.running[name].image, crashImage) || limited && limit.Cmp(leastMemory) < 0
}

// reportSizes writes into a container's status what it has.
func (w *worker) reportSizes(status *corev1.ContainerStatus) {
	c := w.running[status.Name]
	if c == nil || c.id == "" {
		return
	}
	granted, actual := w.size.granted[status.Name], w.size.actual[status.Name]
	status.AllocatedResources = granted.Requests.DeepCopy()
	if c.waiting != "" {
		status.Resources = granted.DeepCopy()
		return
	}
	status.Resources = actual.DeepCopy()
	switch w.kubelet.world.settings.resizes.reports {
	case exact:
	case rounded:
		if cpu, ok := status.Resources.Requests[corev1.ResourceCPU]; ok {
			cpu.Add(resource.MustParse("1m"))
			status.Resources.Requests[corev1.ResourceCPU] = cpu
		}
	case never:
		status.Resources = c.size.DeepCopy()
	}
}

// reportResize writes into a pod's status what becomes of its size.
func (w *worker) reportResize(pod *corev1.Pod) {
	if w.isActual() {
		w.size.progress = nil
	}
	putCondition(pod, corev1.PodResizePending, w.size.pending)
	putCondition(pod, corev1.PodResizeInProgress, w.size.progress)
	if !w.kubelet.world.settings.resizes.on {
		return
	}
	pod.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(w.size.granted.cpu(), resource.DecimalSI)}
	pod.Status.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: unlimited.DeepCopy()}}
	if whole, ok := w.size.granted[""]; ok {
		actual := w.size.actual[""]
		pod.Status.AllocatedResources, pod.Status.Resources = whole.Requests.DeepCopy(), actual.DeepCopy()
	}
}

// putCondition makes a condition what it is now, or removes it. When it came is kept.
func putCondition(pod *corev1.Pod, conditionType corev1.PodConditionType, c *corev1.PodCondition) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
	switch {
	case c == nil && i >= 0:
		pod.Status.Conditions = slices.Delete(pod.Status.Conditions, i, i+1)
	case c != nil && i >= 0:
		since := pod.Status.Conditions[i].LastTransitionTime
		pod.Status.Conditions[i] = *c
		pod.Status.Conditions[i].LastTransitionTime = since
	case c != nil:
		pod.Status.Conditions = append(pod.Status.Conditions, *c)
	}
}
