// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// inUseCode is the gRPC code by which a driver says that it cannot expand a volume
// that is in use. Nothing but the message of the condition tells it.
//
// Source: CSI specification, ControllerExpandVolume and NodeExpandVolume errors.
const inUseCode = "FailedPrecondition"

// maxDriverWords keeps what drivers say readable.
const maxDriverWords = 300

// condition returns a condition of the claim that is True; nil if there is none.
func (f Facts) condition(conditionType corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range f.Claim.Status.Conditions {
		condition := &f.Claim.Status.Conditions[i]
		if condition.Type == conditionType && condition.Status == corev1.ConditionTrue {
			return condition
		}
	}
	return nil
}

// trouble returns a condition that tells of an error of the expansion, nil if there
// is none. One from before the last change of the size is that of another request,
// which the sidecar takes off when it comes to this one.
func (f Facts) trouble(conditionType corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	condition := f.condition(conditionType)
	if condition == nil || condition.LastTransitionTime.Time.Before(RecordOf(f.Claim).SizeTimestamp.Time) {
		return nil
	}
	return condition
}

func saysInUse(condition corev1.PersistentVolumeClaimCondition) bool {
	return strings.Contains(condition.Message, inUseCode)
}

// expansionTrouble returns the step of a claim whose driver reports an error; nil if
// it reports none. Which part of the expansion it is at tells which errors count:
// conditions of the other one may linger.
func (f Facts) expansionTrouble(want, asked resource.Quantity, now time.Time) *Step {
	if f.isExpandedInController() {
		if problem := f.nodeProblem(); problem != nil {
			return ptr.To(f.nodeTrouble(*problem, want, asked, now))
		}
		return nil
	}
	problem := f.trouble(corev1.PersistentVolumeClaimControllerResizeError)
	switch {
	case f.isInfeasible(asked):
		return ptr.To(f.infeasible(problem, asked))
	case problem == nil:
		return nil
	case saysInUse(*problem):
		return ptr.To(f.inUse(want, asked, now))
	default:
		step := f.step(Blocked, ReasonExpansionFailed, "its driver fails to expand it to %s, and is asked again: %s", asked.String(), driverWords(problem.Message))
		step.Since = problem.LastTransitionTime.Time
		return &step
	}
}

// isInfeasible reports whether the driver will not make the volume as large as is
// asked.
func (f Facts) isInfeasible(asked resource.Quantity) bool {
	return f.Claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible &&
		f.isAllocated(asked)
}

// infeasible returns the step of a claim that its driver will not make as large. The
// problem is nil where the condition went missing, which it does when attributes are
// changed as well.
func (f Facts) infeasible(problem *corev1.PersistentVolumeClaimCondition, asked resource.Quantity) Step {
	words, since := "see the events of the claim", time.Time{}
	if problem != nil {
		words, since = driverWords(problem.Message), problem.LastTransitionTime.Time
	}
	step := f.step(Blocked, ReasonExpansionInfeasible, "its driver will not expand it to %s: %s; ask for less, but more than %s, "+
		"or revert the template", asked.String(), words, f.capacity())
	step.Since = since
	return step
}

// nodeProblem returns the condition that tells that the file system does not grow on
// its node; nil if there is none. The kubelet leaves it as it was at first, whatever
// else is asked for, until the file system has grown. That it cannot while it is
// mounted is told of the pod that is there: what the last one met is not.
func (f Facts) nodeProblem() *corev1.PersistentVolumeClaimCondition {
	problem := f.condition(corev1.PersistentVolumeClaimNodeResizeError)
	if problem != nil && saysInUse(*problem) && (!f.isUsed() || !problem.LastTransitionTime.After(f.Pod.Since)) {
		return nil
	}
	return problem
}

// nodeTrouble returns the step of a claim whose file system does not grow on its
// node.
func (f Facts) nodeTrouble(problem corev1.PersistentVolumeClaimCondition, want, asked resource.Quantity, now time.Time) Step {
	if saysInUse(problem) {
		return f.detach(want, asked, ReasonVolumeNotRemounted, "its driver does not grow a file system that is mounted", now)
	}
	step := f.step(Blocked, ReasonExpansionFailed, "its file system does not grow to %s on its node, which tries again: %s; "+
		"its pod is not deleted meanwhile, since another one could not mount it", asked.String(), driverWords(problem.Message))
	step.Since = problem.LastTransitionTime.Time
	return step
}

// isNotMountable reports whether another pod could not mount the volume: its file
// system does not grow on its node, and that comes before the containers start. This
// holds whatever the template says meanwhile.
func (f Facts) isNotMountable() bool {
	problem := f.condition(corev1.PersistentVolumeClaimNodeResizeError)
	return problem != nil && !saysInUse(*problem)
}

// showsInUse reports whether the driver says of the present request that it cannot
// expand a volume in use.
func (f Facts) showsInUse() bool {
	problem := f.trouble(corev1.PersistentVolumeClaimControllerResizeError)
	return problem != nil && saysInUse(*problem) && !f.isExpandedInController()
}

func driverWords(message string) string {
	message = strings.TrimPrefix(message, "failed to expand pvc with ")
	if len(message) > maxDriverWords {
		return strings.ToValidUTF8(message[:maxDriverWords], "") + "..."
	}
	return message
}
