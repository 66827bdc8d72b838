// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// observed is what a pod shows of its in-place updates up to now. It is read from the
// pod once for each plan.
type observed struct {
	pod *corev1.Pod
	// containers are those that live as long as the pod.
	containers []liveContainer
	// state is the zero state if there was no update.
	state appsv1beta1.InPlaceUpdateState
	// evidence has an entry for every container that the record names and the
	// pod still has, in the order of their names.
	evidence []evidence
	// own are the amounts that the operator wrote last, and resized is what became
	// of them on the node.
	own     sets.Set[resize.Field]
	resized resize.Progress
	// request is what a ContainerRecreateRequest asks of the pod; nil if none does.
	request *appsv1beta1.PodRecreateRequest
	// requestWaits is true while the request cannot be given together with an update.
	requestWaits bool
	// template is that of the revision that the pod's label names; nil if it is not
	// known.
	template *Template
	// known is the progress, once it was asked for.
	known *Progress
}

func observedOf(pod *corev1.Pod, now time.Time) *observed {
	o := &observed{pod: pod, containers: liveContainers(pod), request: RecreateRequestOf(pod)}
	var written time.Time
	o.own, written = resize.Written(pod)
	o.resized = resize.Observe(pod, o.own, written, now)
	state, err := readState(pod)
	if err != nil || state == nil {
		return o
	}
	o.state, o.evidence = *state, make([]evidence, 0, len(state.LastContainerStatuses))
	for _, container := range o.containers {
		entry, ok := state.LastContainerStatuses[container.name]
		if !ok {
			continue
		}
		e := evidence{liveContainer: container, node: pod.Spec.NodeName, entry: entry}
		e.judge(pod, ptr.Deref(entry.Changed, state.UpdateTimestamp).Time, now)
		o.evidence = append(o.evidence, e)
	}
	slices.SortFunc(o.evidence, func(a, b evidence) int { return strings.Compare(a.name, b.name) })
	return o
}

// evidenceOf returns the evidence of a container; nil if the record does not name it.
func (o *observed) evidenceOf(container string) *evidence {
	for i := range o.evidence {
		if o.evidence[i].name == container {
			return &o.evidence[i]
		}
	}
	return nil
}

// container returns a container of the pod; one without a name if it has none of the name.
func (o *observed) container(name string) liveContainer {
	for i := range o.containers {
		if o.containers[i].name == name {
			return o.containers[i]
		}
	}
	return liveContainer{status: noStatus}
}

// progress is what Observe promises.
func (o *observed) progress() Progress {
	if o.known == nil {
		o.known = ptr.To(o.judge())
	}
	return *o.known
}

func (o *observed) judge() Progress {
	progress := Progress{
		Complete: true, Proved: o.resized.State == resize.Done && o.isFinished(), Since: o.state.UpdateTimestamp.Time, Recheck: o.resized.Recheck,
	}
	for i := range o.evidence {
		e := &o.evidence[i]
		progress.Proved = progress.Proved && e.proved()
		if e.done() {
			continue
		}
		if progress.unrestarted == "" && e.restartsNever() {
			_, progress.unrestarted = e.missing()
		}
		if progress.Complete {
			progress.Complete = false
			progress.Reason, progress.Message = e.missing()
		}
		if at := e.settledAt; !at.IsZero() && (progress.Recheck.IsZero() || at.Before(progress.Recheck)) {
			progress.Recheck = at
		}
	}
	if progress.Complete && o.resized.Restarts && o.resized.IsUnderWay() {
		progress.Complete = false
		progress.Reason, progress.Message = resizeReasons[o.resized.State], o.resized.Message
	}
	if progress.Next = o.next(); len(progress.Next) > 0 {
		progress.Proved = false
		if progress.Complete {
			progress.Complete = false
			progress.Reason, progress.Message = ReasonNextBatch, "to be changed next: "+strings.Join(containersOf(progress.Next), ", ")
		}
	}
	return progress
}
