// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// errNotDriven refuses what only Insitu does.
func (w *Workload) errNotDriven(what, instead string) error {
	return fmt.Errorf("%s is not possible: Kubernetes updates the pods, since the label %s is missing. "+
		"To have Insitu update them in place: kubectl label %s %s=%s%s",
		what, native.UpdatePolicyLabel, w, native.UpdatePolicyLabel, appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, instead)
}

// notesOnRollout says of a workload with a changed template what keeps its pods from
// being updated in place at once.
func (w *Workload) notesOnRollout() []string {
	view, err := w.view()
	if err != nil {
		return nil
	}
	var notes []string
	switch {
	case view.NotRolling != "":
		notes = append(notes, view.NotRolling)
	case !w.isDriven():
		notes = append(notes, fmt.Sprintf("Kubernetes recreates the pods: %s has no label %s", w, native.UpdatePolicyLabel))
	case w.Kind.IsOurs() && view.Policy == string(appsv1beta1.RecreatePodUpdateStrategyType):
		notes = append(notes, w.Kind.Spell("podUpdatePolicy is ReCreate: the pods are recreated"))
	}
	if view.Paused {
		notes = append(notes, fmt.Sprintf("paused: no pod is updated before kubectl insitu resume %s", w))
	} else if view.PausedByUser {
		notes = append(notes, fmt.Sprintf("spec.paused is true: no pod is updated before kubectl insitu resume %s", w))
	}
	if p, err := w.partition(view); err == nil && w.isDriven() && p.Keeps(p.current) > 0 {
		notes = append(notes, fmt.Sprintf("%s is %s: it keeps %d of %d pods as they are until kubectl insitu promote %s",
			p.field, p.current.String(), p.Keeps(p.current), p.replicas, w))
	}
	if view.KeepsToo != "" {
		notes = append(notes, view.KeepsToo)
	}
	return notes
}
