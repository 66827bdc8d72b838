// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The resizer of the driver, as it grows volumes.

// growth is what the resizer remembers of a volume.
type growth struct {
	queue
	// call is a call to the driver that is not answered yet.
	call *growthCall
	// calls counts those that failed for one size.
	calls int
	asked resource.Quantity
	// final: the last call ended with an error after which nothing goes on. inUse: the
	// driver said that the volume is in use. slowUntil: the size cannot be, and is tried
	// again later.
	final, inUse bool
	slowUntil    time.Time
	// request, capacity and status are those that it saw last.
	request, capacity resource.Quantity
	status            corev1.ClaimResourceStatus
	resync            time.Time
}

type growthCall struct {
	answer time.Time
	size   resource.Quantity
	// version is that of the claim when the driver was called.
	version string
}

// queue is a place in a work queue: when it is done next, zero for not at all, and
// how often it failed in a row.
type queue struct {
	due      time.Time
	failures int
}

func (q *queue) add(at time.Time) {
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
	}
}

// maxBackOff is the longest that the resizer waits after an error.
const maxBackOff = 5 * time.Minute

// retry tries again later, ever later.
func (q *queue) retry(now time.Time) {
	q.add(now.Add(min(time.Second<<min(q.failures, 10), maxBackOff)))
	q.failures++
}

// rpcError is how a driver fails.
type rpcError struct{ code, words string }

func (e *rpcError) Error() string {
	return fmt.Sprintf("rpc error: code = %s desc = %s", e.code, e.words)
}

// isFinal reports whether nothing goes on behind the error.
func (e *rpcError) isFinal() bool {
	return !slices.Contains([]string{"Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted"}, e.code)
}

func (e *rpcError) isInfeasible() bool {
	return slices.Contains([]string{"InvalidArgument", "OutOfRange", "NotFound"}, e.code)
}

// see remembers what there is of a claim.
func (v *volume) see(claim *corev1.PersistentVolumeClaim) {
	v.growth.request, v.growth.capacity, v.growth.status = requestOf(claim), capacityOf(claim), growthStatus(claim)
	v.change.wanted = ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

func growthStatus(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// resyncs is how often the resizer looks at everything.
const resyncs = 10 * time.Minute

// stepResizer is one second of the resizer for a claim that is bound.
func (s *storage) stepResizer(v *volume, claim *corev1.PersistentVolumeClaim) {
	g := &v.growth
	if compare(g.request, requestOf(claim)) != 0 || compare(capacityOf(claim), g.capacity) > 0 || g.status != growthStatus(claim) {
		g.add(s.soon())
	}
	if now := s.now(); !now.Before(g.resync) {
		g.add(now)
		g.resync = now.Add(resyncs)
	}
	g.request, g.capacity, g.status = requestOf(claim), capacityOf(claim), growthStatus(claim)
	switch now := s.now(); {
	case g.call != nil && !now.Before(g.call.answer):
		s.answerGrowth(v, claim)
	case g.call == nil && !g.due.IsZero() && !now.Before(g.due):
		g.due = time.Time{}
		s.grow(v, claim)
	}
}

// grow does what the resizer does about a claim whose turn it is.
func (s *storage) grow(v *volume, claim *corev1.PersistentVolumeClaim) {
	g := &v.growth
	if compare(requestOf(claim), capacityOf(claim)) <= 0 {
		g.failures = 0
		return
	}
	size, calls := v.nextSize(claim)
	if !calls {
		g.failures = 0
		return
	}
	now, status := s.now(), growthStatus(claim)
	isSlow := now.Before(g.slowUntil)
	if status == corev1.PersistentVolumeClaimControllerResizeInfeasible {
		g.slowUntil = now.Add(maxBackOff)
	}
	allocated, has := claim.Status.AllocatedResources[corev1.ResourceStorage]
	isNew := !has || compare(allocated, size) != 0
	if !isNew && isSlow {
		g.add(g.slowUntil)
		return
	}
	s.write(claim.Name, func(claim *corev1.PersistentVolumeClaim) {
		if isNew {
			dropGrowthConditions(claim)
			setGrowthStatus(claim, corev1.PersistentVolumeClaimControllerResizeInProgress)
		}
		s.setClaimCondition(claim, corev1.PersistentVolumeClaimResizing, "")
		if claim.Status.AllocatedResources == nil {
			claim.Status.AllocatedResources = corev1.ResourceList{}
		}
		claim.Status.AllocatedResources[corev1.ResourceStorage] = size
	})
	if g.inUse && s.isInUse(claim.Name) {
		g.retry(now)
		return
	}
	g.inUse = false
	if compare(g.asked, size) != 0 {
		g.calls, g.asked = 0, size
	}
	takes := time.Second + s.world.choices.seconds(s.world.settings.volumes.delay)
	if d := s.driverOf(claim); d.code == "DeadlineExceeded" && v.fails(d) {
		takes = 10 * time.Second
	}
	g.call = &growthCall{answer: now.Add(takes), size: size, version: s.claimOf(v).ResourceVersion}
}

// nextSize returns the size that the driver is asked for, if it is called.
func (v *volume) nextSize(claim *corev1.PersistentVolumeClaim) (size resource.Quantity, calls bool) {
	wanted, status := requestOf(claim), growthStatus(claim)
	allocated, has := claim.Status.AllocatedResources[corev1.ResourceStorage]
	if !has {
		allocated = wanted
	}
	isGrown := compare(v.size, wanted) >= 0
	switch status {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		// What the node has begun it ends first.
		return allocated, !isGrown && compare(v.size, allocated) < 0
	case corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return allocated, true
	case corev1.PersistentVolumeClaimControllerResizeInProgress:
		if !isGrown && v.growth.final {
			return wanted, true
		}
		return allocated, true
	case corev1.PersistentVolumeClaimControllerResizeInfeasible:
		if isGrown {
			return allocated, true
		}
		return wanted, true
	default:
		if isGrown {
			return allocated, true
		}
		return wanted, true
	}
}

// isInUse reports whether the resizer takes a claim for one in use.
func (s *storage) isInUse(claim string) bool {
	return slices.ContainsFunc(s.podsWith(claim), func(pod *corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
	})
}

// fails reports whether a call fails that is not the first.
func (v *volume) fails(d driver) bool {
	return d.code != "" && (d.failures == forever || v.growth.calls < d.failures)
}

// expand is what the driver says to a call.
func (s *storage) expand(v *volume, d driver, size resource.Quantity) *rpcError {
	switch {
	case compare(size, v.size) <= 0:
		return nil
	case d.offline && v.node != "":
		return &rpcError{"FailedPrecondition", "volume is in use on " + v.node}
	case d.limit != "" && compare(size, resource.MustParse(d.limit)) > 0:
		return &rpcError{"OutOfRange", "no volume is larger than " + d.limit}
	case v.fails(d):
		return &rpcError{d.code, "as simulated"}
	case s.now().Before(v.grown.Add(time.Duration(d.coolDown) * time.Second)):
		return &rpcError{"ResourceExhausted", "the volume was modified a moment ago"}
	default:
		return nil
	}
}

// answerGrowth takes what the driver says.
func (s *storage) answerGrowth(v *volume, claim *corev1.PersistentVolumeClaim) {
	g, now := &v.growth, s.now()
	call := g.call
	g.call = nil
	d := s.driverOf(claim)
	if err := s.expand(v, d, call.size); err != nil {
		g.calls++
		s.say("%s does not grow to %s: %v", v.claim, call.size.String(), err)
		g.inUse = err.code == "FailedPrecondition"
		g.final = err.isFinal()
		if !g.final || !err.isInfeasible() {
			g.slowUntil = time.Time{}
		}
		if g.final {
			s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
				if err.isInfeasible() {
					setGrowthStatus(claim, corev1.PersistentVolumeClaimControllerResizeInfeasible)
				}
				s.setClaimCondition(claim, corev1.PersistentVolumeClaimControllerResizeError, "failed to expand pvc with "+err.Error())
			})
		}
		g.retry(now)
		return
	}
	g.final, g.slowUntil = false, time.Time{}
	if compare(call.size, v.size) > 0 {
		v.size, v.grown = call.size, now
	}
	if call.version != claim.ResourceVersion {
		g.retry(now) // it was changed meanwhile: what came of it is written next time
		return
	}
	g.failures = 0
	if d.whole {
		s.say("%s has grown to %s", v.claim, call.size.String())
		s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
			finishGrowth(claim, v.size)
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "volume.kubernetes.io/node-expansion-not-required", "true")
		})
		return
	}
	s.say("%s is to grow to %s on its node", v.claim, call.size.String())
	s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
		setGrowthStatus(claim, corev1.PersistentVolumeClaimNodeResizePending)
		s.setClaimCondition(claim, corev1.PersistentVolumeClaimFileSystemResizePending,
			"Waiting for user to (re-)start a pod to finish file system resize of volume on node.")
	})
	v.nodal.begin()
}

// finishGrowth writes down that a volume has its size.
func finishGrowth(claim *corev1.PersistentVolumeClaim, size resource.Quantity) {
	claim.Status.Capacity[corev1.ResourceStorage] = size
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	if len(claim.Status.AllocatedResourceStatuses) == 0 {
		claim.Status.AllocatedResourceStatuses = nil
	}
	dropGrowthConditions(claim)
}

func setGrowthStatus(claim *corev1.PersistentVolumeClaim, status corev1.ClaimResourceStatus) {
	if claim.Status.AllocatedResourceStatuses == nil {
		claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = status
}

// setClaimCondition sets a condition as the resizer does: its time is that of the
// last try.
func (s *storage) setClaimCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, message string) {
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind })
	claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
		Type: kind, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(s.now()),
	})
}

func dropGrowthConditions(claim *corev1.PersistentVolumeClaim) {
	dropClaimConditions(claim, corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError)
}

func dropClaimConditions(claim *corev1.PersistentVolumeClaim, kinds ...corev1.PersistentVolumeClaimConditionType) {
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(kinds, c.Type)
	})
	if len(claim.Status.Conditions) == 0 {
		claim.Status.Conditions = nil
	}
}

// claimCondition returns a condition of a claim; nil for none.
func claimCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	i := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &claim.Status.Conditions[i]
}

// describeClaim tells what can be seen of a claim.
func describeClaim(claim *corev1.PersistentVolumeClaim) string {
	request, capacity := requestOf(claim), capacityOf(claim)
	words := []string{string(claim.Status.Phase), request.String() + " of which " + capacity.String()}
	if status := growthStatus(claim); status != "" {
		allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]
		words = append(words, fmt.Sprintf("%s to %s", status, allocated.String()))
	}
	if wanted, has := ptr.Deref(claim.Spec.VolumeAttributesClassName, ""), ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, ""); wanted != has {
		words = append(words, fmt.Sprintf("%q instead of %q", has, wanted))
	} else if has != "" {
		words = append(words, has)
	}
	if status := claim.Status.ModifyVolumeStatus; status != nil {
		words = append(words, fmt.Sprintf("%s to %s", status.Status, status.TargetVolumeAttributesClassName))
	}
	var conditions []string
	for _, c := range claim.Status.Conditions {
		conditions = append(conditions, string(c.Type))
	}
	slices.Sort(conditions)
	return strings.Join(append(words, conditions...), ", ")
}
