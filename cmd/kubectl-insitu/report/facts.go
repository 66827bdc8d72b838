// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Facts are what a report is made of.
type Facts struct {
	Kind   schema.GroupVersionKind
	Object client.Object
	// Inspection is what the operator would decide. It has no plan for a native workload
	// that is not held: only Kubernetes decides on that.
	Inspection workload.Inspection
	// Partial is true where the decision on claims was made without something that could
	// not be read. Only what the operator has reported counts then.
	Partial bool
	// Pods are those that the workload owns, Claims are those of its namespace by name.
	Pods   []*corev1.Pod
	Claims map[string]*corev1.PersistentVolumeClaim
	// Revisions are those of the workload, without the number of their pods. RevisionOf
	// says which of them a pod has; empty if it is none of them.
	Revisions  []Revision
	RevisionOf func(*corev1.Pod) string
	Now        time.Time

	// view is what Object says.
	view kinds.View
}

// New returns the report on a workload.
func New(f Facts) Workload {
	var w Workload
	var err error
	if f.view, err = kinds.Read(f.Object); err == nil {
		w = summarize(f.Object, f.view)
	} else {
		w = Workload{Phase: Unknown, Message: err.Error()}
	}
	w.Ref = RefOf(f.Kind, f.Object)
	w.UID, w.CreationTimestamp = f.Object.GetUID(), f.Object.GetCreationTimestamp()
	if isOfAnotherUpdate(f, w) {
		w.Updated = 0
		w = w.notObserved("the operator has not said anything of the present revision yet")
	}
	if f.Inspection.Planned {
		w.MaxUnavailable = int32(f.Inspection.Workload.MaxUnavailable) //nolint:gosec // a number of pods
	}
	w.Blockers = blockers(f, w)
	w = w.unlessHelpless()
	w.Pods = pods(f, w)
	w.Revisions = revisionsInUse(f, w)
	if w.Driver == Insitu && !f.view.Kind.IsOurs() {
		// Kubernetes does not say it, also when the hold has ended.
		w.InPlace, w.Recreated = countWays(w.Pods)
	}
	advise(&w)
	return w
}

// isOfAnotherUpdate reports whether what the operator has said of a held workload is of
// another revision than its pods are updated to now. There is no generation to tell.
func isOfAnotherUpdate(f Facts, w Workload) bool {
	return w.Held && f.Inspection.Planned && f.view.Reported.Revision != f.Inspection.Update
}

// unlessHelpless says of a workload that seems to progress that it does not: a pod needs
// help.
func (w Workload) unlessHelpless() Workload {
	if w.Phase != Progressing || len(w.Blockers) == 0 || !w.Blockers[0].NeedsHelp {
		return w
	}
	worst := w.Blockers[0]
	w.Phase, w.Reason, w.Message = Stalled, worst.Reason, "pod "+worst.Pod+": "+worst.Message
	return w
}

// RefOf names an object of a kind.
func RefOf(kind schema.GroupVersionKind, object client.Object) Ref {
	return Ref{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// countWays counts the updated pods by the way they got there.
func countWays(pods []Pod) (inPlace, recreated int32) {
	for i := range pods {
		switch {
		case !pods[i].Updated:
		case pods[i].InPlace:
			inPlace++
		default:
			recreated++
		}
	}
	return inPlace, recreated
}

// revisionsInUse returns the revisions that pods have or are to have, the one to come
// first.
func revisionsInUse(f Facts, w Workload) []Revision {
	count := map[string]int32{}
	for i := range w.Pods {
		if w.Pods[i].State != Ended {
			count[w.Pods[i].Revision]++
		}
	}
	var first, others []Revision
	for _, revision := range f.Revisions {
		revision.Pods = count[revision.Name]
		switch {
		case revision.IsUpdate:
			first = append(first, revision)
		case revision.IsCurrent || revision.Pods > 0:
			others = append(others, revision)
		}
	}
	return append(first, others...)
}
