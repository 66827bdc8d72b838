// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// settleMargin is added to a pod's termination grace period to give the settle
// time of its containers: how long the kubelet can take, after it reported that
// it has seen a change, to stop a container that does not match it.
const settleMargin = 15 * time.Second

// Reasons why a container is not done.
const (
	// ReasonNotObserved: the kubelet has not reported that it saw the change.
	ReasonNotObserved = "NotObserved"
	// ReasonContainerRestarting: the container has not been started again yet.
	ReasonContainerRestarting = "ContainerRestarting"
	// ReasonSettling: the container runs, and it will be certain that it stays
	// when the settle time is over.
	ReasonSettling = "Settling"
	// ReasonNotRestarted: the container was to be restarted, and the kubelet has not
	// done so in the time that it has.
	ReasonNotRestarted = "NotRestarted"
	// ReasonNextBatch: the containers changed so far are done, others of the pod
	// are changed after them.
	ReasonNextBatch = "NextBatch"
)

// crashLoopBackOff is the kubelet's reason of a container that it will start again later, since it
// has started it often: because it crashed, or because it was changed.
const crashLoopBackOff = "CrashLoopBackOff"

// Progress tells how far the last in-place update of a pod has come.
type Progress struct {
	// Complete is true when every container that was changed runs from its
	// present image reference. It is true for a pod that was never updated.
	Complete bool
	// Proved is true when every container that was changed is known to have been
	// started from its present image reference, whether it runs or not, and the
	// node has done what it will for the sizes that were changed. A container that
	// crashes long after its update is proved and not complete; while the sizes of
	// one are changed as it runs, it is complete and not proved.
	Proved bool
	// Reason and Message say what is missing; empty if complete. Reason is a
	// Reason constant, or the kubelet's own: ImagePullBackOff, CrashLoopBackOff.
	Reason, Message string
	// Since is when the update was written; zero if there was none.
	Since time.Time
	// Recheck is when time alone can complete the update; zero if it cannot.
	Recheck time.Time
	// unrestarted says of a container that was to be restarted for its environment that it
	// has the image again that it had before: the kubelet has no reason to. It is empty if
	// there is none.
	unrestarted string
	// Next holds the containers whose turn comes when those changed so far are
	// ready. While there are any, the update is neither complete nor proved.
	Next []ImageChange
}

// Observe judges the last in-place update of a pod by what the pod shows.
//
// A container is done when it runs and was started from its present reference.
// The reference in the container's status is no evidence, it may name the same
// content in other words; an image ID is none by itself, it stays when a tag is
// replaced by another of the same digest. The evidence is the container ID: see
// evidence.judge.
func Observe(pod *corev1.Pod, now time.Time) Progress {
	return observedOf(pod, now).progress()
}

// verdict is what is known of a container after a change.
type verdict int

const (
	// pending: it cannot be told yet what the container was started from.
	pending verdict = iota
	// restarted: a new container was started from the present reference.
	restarted
	// kept: the container was started from the present reference before, and
	// the kubelet never had a reason to restart it: a rollback overtook it.
	kept
)

// evidence is what a pod shows of one container that its record names.
type evidence struct {
	liveContainer
	node    string
	entry   appsv1beta1.InPlaceUpdateContainerStatus
	verdict verdict
	// observed: the kubelet has reported that it saw the present spec.
	observed bool
	// imageFailed: the kubelet saw the present spec and cannot get the image.
	imageFailed bool
	// settled: the kubelet has had the time to stop a container that does not
	// match the present spec.
	settled bool
	// settlement is when that time is over; zero if there is no such time.
	settlement time.Time
	// settledAt is when the verdict falls if nothing changes until then; zero if
	// time does not decide.
	settledAt time.Time
}

func (e *evidence) proved() bool {
	return e.verdict != pending
}

// isCertain reports whether it is beyond doubt what the container was started
// from. A restart that left the image ID as it was may have been one of the old
// image, by itself, before the kubelet saw the change: then the kubelet is about
// to restart it again, or has been told to go back and never will.
func (e *evidence) isCertain() bool {
	return e.verdict == kept || e.verdict == restarted && e.hasOtherImage()
}

// hasOtherImage reports whether the container has another image ID than the one that ran before the
// change. Where none did, as far as the status said by then, one of the old image may have started.
func (e *evidence) hasOtherImage() bool {
	return e.entry.ImageID != "" && e.status.ImageID != e.entry.ImageID
}

// isOpen reports whether the container may still run from another reference than
// the present one. There is no evidence of a container that was never changed.
func (e *evidence) isOpen() bool {
	return e != nil && !e.isCertain() && !e.settled && !e.imageFailed
}

// mayRun returns the references that the container may have been started from.
func (e *evidence) mayRun() sets.Set[string] {
	references := sets.New(e.image)
	if e.isOpen() {
		references.Insert(e.entry.EarlierImages...).Insert(e.entry.Image)
	}
	return references.Delete("")
}

func (e *evidence) done() bool {
	return e.proved() && e.status.State.Running != nil
}

// restartsNever reports whether the container has the image again that it had before the
// operator spelled it otherwise to have it restarted: admission, for example, changed it back.
func (e *evidence) restartsNever() bool {
	return e.settled && e.entry.EnvChanged && !e.proved() && e.status.State.Running != nil && e.image == e.entry.Image
}

// missing says what is missing for the container to be done.
func (e *evidence) missing() (reason, message string) {
	waiting, terminated := e.status.State.Waiting, e.status.State.Terminated
	switch {
	case waiting != nil && waiting.Reason == crashLoopBackOff && e.observed && !e.proved():
		return waiting.Reason, strings.TrimSuffix(fmt.Sprintf("container %s: the kubelet has started it several times within minutes, and waits before it does so again: %s",
			e.name, waiting.Message), ": ")
	case waiting != nil && waiting.Reason != "" && e.observed:
		return waiting.Reason, strings.TrimSuffix(fmt.Sprintf("container %s: %s", e.name, waiting.Message), ": ")
	case e.hasEnded() && e.observed:
		return ReasonContainerRestarting, fmt.Sprintf("sidecar %s ended with exit code %d and is not started again yet; the pod's events say why",
			e.name, terminated.ExitCode)
	case terminated != nil && e.observed:
		return ReasonContainerRestarting, fmt.Sprintf("container %s ended with exit code %d and is not started again yet",
			e.name, terminated.ExitCode)
	case !e.observed:
		return ReasonNotObserved, fmt.Sprintf("container %s: %s has not reported that it saw the change", e.name, kubeletOn(e.node))
	case e.settled && e.entry.EnvChanged:
		return ReasonNotRestarted, fmt.Sprintf("container %s was given another spelling of its image, to be restarted, and has %s: "+
			"if admission rewrites images, its environment stays out of date until the pod is deleted", e.name, e.image)
	case !e.settledAt.IsZero():
		return ReasonSettling, fmt.Sprintf("container %s runs; it is certain at %s that it stays",
			e.name, e.settledAt.UTC().Format(time.RFC3339))
	default:
		return ReasonContainerRestarting, fmt.Sprintf("container %s is being restarted", e.name)
	}
}

// judge decides what the container was started from.
//
// The kubelet reports the generation that it has seen together with the
// statuses from before it acts, so a new container ID proves a restart but not
// by itself a restart for this change: the old container may have crashed just
// before. A changed image ID excludes that, and so does a start after the change
// was written. Where an earlier change was overtaken, the new container may
// come from that one. What remains is decided by time: a container that does not
// match the spec which the kubelet has seen is stopped within the pod's
// termination grace period.
//
// One thing is taken for what it is not: a container that ran, and restarts by itself,
// from the old image, after the change was written and before the kubelet sees
// it, or in the second before it was written, for that is how exact the times are.
// It counts as done until the kubelet stops it, a moment later. To exclude it,
// every update to another name of the same content would have to wait for the
// settle time.
//
// The kubelet leaves a sidecar alone that is still starting, so for that time
// decides nothing until it has started.
//
// A kubelet that reports no observed generation (before Kubernetes 1.34, or a
// virtual one) is judged by container ID and time alone.
func (e *evidence) judge(pod *corev1.Pod, changed, now time.Time) {
	reportsGeneration := pod.Status.ObservedGeneration > 0
	e.observed = !reportsGeneration || pod.Status.ObservedGeneration >= pod.Generation
	if !e.observed {
		return
	}
	e.imageFailed = LacksImage(*e.status)
	started := startedAt(e.status)
	settledAt := e.settlesAt(pod, latest(started, changed))
	settled := !settledAt.IsZero() && !now.Before(settledAt)
	e.settled, e.settlement = settled, settledAt

	switch {
	case e.status.ContainerID == "":
	case e.status.ContainerID != e.entry.ContainerID && (settled || reportsGeneration && e.provesRestart(started, changed)):
		e.verdict = restarted
	case e.status.ContainerID == e.entry.ContainerID && e.provesKept(reportsGeneration):
		e.verdict = kept
	case e.status.State.Running != nil && !settled && (e.status.ContainerID != e.entry.ContainerID || e.mayBeKept()):
		e.settledAt = settledAt
	}
}

// mayBeKept reports whether the container that ran before may have been started
// from the present reference.
func (e *evidence) mayBeKept() bool {
	return e.entry.Image == e.image || e.entry.Image == ""
}

// provesKept reports whether a container that was not restarted need not be. One
// that was to be restarted for its environment was given a reference that it cannot
// have been started from: if it has such a one nevertheless, another client has put
// it back, and time proves nothing.
func (e *evidence) provesKept(reportsGeneration bool) bool {
	switch {
	case e.entry.EnvChanged || !e.mayBeKept():
		return false
	case e.entry.Image == "":
		return e.settled
	default:
		return e.settled || reportsGeneration
	}
}

// settlesAt returns when time decides on a container that has been as it is since
// a moment; zero if it does not. That a sidecar has started has no time of its
// own in the status; the pod's containers are ready since then or later.
func (e *evidence) settlesAt(pod *corev1.Pod, since time.Time) time.Time {
	if e.isStarting() {
		return time.Time{}
	}
	if e.sidecar {
		since = latest(since, condition(pod, corev1.ContainersReady).LastTransitionTime.Time)
	}
	return since.Add(settleTime(pod))
}

// provesRestart reports whether a new container ID alone, without waiting, is
// proof that the container was started for the last change.
func (e *evidence) provesRestart(started, changed time.Time) bool {
	if e.entry.Superseding {
		return false
	}
	return e.hasOtherImage() || !e.entry.Resizing && !e.entry.Restarting && !started.Before(changed)
}

// imageFailures are the kubelet's reasons of a container that waits for its image in vain.
var imageFailures = sets.New("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
	"RegistryUnavailable", "SignatureValidationFailed")

// IsImageFailure reports whether a reason is one of the kubelet's for a container that waits for
// its image in vain. They take turns.
func IsImageFailure(reason string) bool { return imageFailures.Has(reason) }

// LacksImage reports whether a container waits for its image in vain.
func LacksImage(status corev1.ContainerStatus) bool {
	return status.State.Waiting != nil && IsImageFailure(status.State.Waiting.Reason)
}

// MayTakeTurns reports whether the kubelet may give two reasons in turn for the same container,
// which does not start.
func MayTakeTurns(a, b string) bool {
	isOne := func(reason string) bool { return reason == crashLoopBackOff || IsImageFailure(reason) }
	return isOne(a) && isOne(b)
}

func startedAt(status *corev1.ContainerStatus) time.Time {
	switch {
	case status.State.Running != nil:
		return status.State.Running.StartedAt.Time
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time
	case status.LastTerminationState.Terminated != nil:
		return status.LastTerminationState.Terminated.StartedAt.Time
	default:
		return time.Time{}
	}
}

func settleTime(pod *corev1.Pod) time.Duration {
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(grace)*time.Second + settleMargin
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
