// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The resizer of the driver, as it changes the attributes of volumes.

// modification is what the resizer remembers of a volume whose class changes.
type modification struct {
	queue
	call *modificationCall
	// calls counts the calls that failed for one class.
	calls int
	asked string
	// uncertain: the last call may still go on behind the error.
	uncertain bool
	slowUntil time.Time
	// wanted and version are what it saw last.
	wanted, version string
}

type modificationCall struct {
	answer time.Time
	target string
}

// stepModifier is one second of the resizer for a claim that is bound.
func (s *storage) stepModifier(v *volume, claim *corev1.PersistentVolumeClaim) {
	m, wanted := &v.change, ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
	if m.wanted != wanted || claim.Status.ModifyVolumeStatus == nil && m.version != claim.ResourceVersion {
		m.add(s.soon())
	}
	m.wanted, m.version = wanted, claim.ResourceVersion
	switch now := s.now(); {
	case m.call != nil && !now.Before(m.call.answer):
		s.answerModification(v)
	case m.call == nil && !m.due.IsZero() && !now.Before(m.due):
		m.due = time.Time{}
		s.modify(v, claim)
	}
}

// modify does what the resizer does about the class of a claim whose turn it is.
func (s *storage) modify(v *volume, claim *corev1.PersistentVolumeClaim) {
	m, now := &v.change, s.now()
	wanted, status := ptr.Deref(claim.Spec.VolumeAttributesClassName, ""), claim.Status.ModifyVolumeStatus
	if status == nil || status.TargetVolumeAttributesClassName != wanted {
		m.slowUntil = time.Time{}
	} else if now.Before(m.slowUntil) {
		m.retry(now)
		return
	}
	inProgress := status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumeInProgress
	switch {
	case status == nil && wanted == ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, ""):
		m.failures = 0
		return
	case wanted == "" && !inProgress:
		m.failures = 0
		s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
			dropClaimConditions(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume)
		})
		return
	}
	target := wanted
	if inProgress && (m.uncertain || wanted == "") {
		target = status.TargetVolumeAttributesClassName
	}
	_, exists := get[*storagev1.VolumeAttributesClass](s.world.server, target)
	if target == wanted && (!inProgress || !m.uncertain) {
		s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) { s.markModifying(claim, exists, target) })
	}
	if !exists {
		if target != wanted {
			m.retry(now)
		}
		return // the resizer is not told that the class comes
	}
	if m.asked != target {
		m.asked, m.calls = target, 0
	}
	takes := time.Second + s.world.choices.seconds(s.world.settings.volumes.delay)
	if d := attributeClasses[target]; d.code == "DeadlineExceeded" && m.fails(d) {
		takes = 10 * time.Second
	}
	m.call = &modificationCall{answer: now.Add(takes), target: target}
}

func (m *modification) fails(d driver) bool {
	return d.code != "" && (d.failures == forever || m.calls < d.failures)
}

// markModifying writes down that a claim is to get a class.
func (s *storage) markModifying(claim *corev1.PersistentVolumeClaim, exists bool, target string) {
	if claim.Status.ModifyVolumeStatus == nil {
		claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{}
	}
	status := claim.Status.ModifyVolumeStatus
	if !exists {
		status.Status = corev1.PersistentVolumeClaimModifyVolumePending
		return
	}
	status.Status, status.TargetVolumeAttributesClassName = corev1.PersistentVolumeClaimModifyVolumeInProgress, target
	s.setModifyCondition(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume, "", fmt.Sprintf("Modifying volume to %q is in progress.", target))
}

// answerModification takes what the driver says.
func (s *storage) answerModification(v *volume) {
	m, now := &v.change, s.now()
	target := m.call.target
	m.call = nil
	d := attributeClasses[target]
	if m.fails(d) {
		m.calls++
		err := &rpcError{d.code, "as simulated"}
		s.say("%s does not get class %s: %v", v.claim, target, err)
		m.uncertain = !err.isFinal()
		s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
			status, message := corev1.PersistentVolumeClaimModifyVolumeInProgress, fmt.Sprintf("Modifying volume to %q is still in progress.", target)
			if err.isFinal() {
				message = fmt.Sprintf("Modifying volume to %q failed. Waiting for retry.", target)
			}
			if err.code == "InvalidArgument" {
				status = corev1.PersistentVolumeClaimModifyVolumeInfeasible
				m.slowUntil = now.Add(maxBackOff)
			}
			claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{Status: status, TargetVolumeAttributesClassName: target}
			s.setModifyCondition(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume, "", message)
			s.setModifyCondition(claim, corev1.PersistentVolumeClaimVolumeModifyVolumeError, err.code, err.words)
		})
		m.retry(now)
		return
	}
	m.uncertain, m.failures = false, 0
	v.attributes = target
	s.say("%s has class %s", v.claim, target)
	s.write(v.claim, func(claim *corev1.PersistentVolumeClaim) {
		claim.Status.ModifyVolumeStatus, claim.Status.CurrentVolumeAttributesClassName = nil, &target
		dropClaimConditions(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume, corev1.PersistentVolumeClaimVolumeModifyVolumeError)
	})
}

// setModifyCondition sets a condition as the resizer does for a class: its time is
// when it changed.
func (s *storage) setModifyCondition(claim *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, reason, message string) {
	now := metav1.NewTime(s.now())
	c := corev1.PersistentVolumeClaimCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now,
	}
	i := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool { return c.Type == kind })
	if i < 0 {
		claim.Status.Conditions = append(claim.Status.Conditions, c)
		return
	}
	if old := claim.Status.Conditions[i]; old.Reason == reason {
		c.LastTransitionTime = old.LastTransitionTime
	}
	claim.Status.Conditions[i] = c
}

// target returns the class that is tried next.
func (m *modification) target(claim *corev1.PersistentVolumeClaim) string {
	if m.call != nil {
		return m.call.target
	}
	if status := claim.Status.ModifyVolumeStatus; status != nil && m.uncertain {
		return status.TargetVolumeAttributesClassName
	}
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}
