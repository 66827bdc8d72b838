// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

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
	typed, err := w.typed()
	if err != nil {
		return nil
	}
	var notes []string
	switch why := notRolling(typed); {
	case why != "":
		notes = append(notes, why)
	case !w.isDriven():
		notes = append(notes, fmt.Sprintf("Kubernetes recreates the pods: %s has no label %s", w, native.UpdatePolicyLabel))
	case recreates(typed):
		notes = append(notes, "podUpdatePolicy is ReCreate: the pods are recreated")
	}
	if isPaused(typed) {
		notes = append(notes, fmt.Sprintf("paused: no pod is updated before kubectl insitu resume %s", w))
	} else if d, ok := typed.(*appsv1.Deployment); ok && native.IsPausedByUser(d) {
		notes = append(notes, fmt.Sprintf("spec.paused is true: no pod is updated before kubectl insitu resume %s", w))
	}
	if p, err := w.partition(typed); err == nil && w.isDriven() && p.kept(p.current) > 0 {
		notes = append(notes, fmt.Sprintf("%s is %s: it keeps %d of %d pods as they are until kubectl insitu promote %s",
			p.field, p.current.String(), p.kept(p.current), p.replicas, w))
	}
	return notes
}

// recreates reports whether a kind of ours is told to recreate pods.
func recreates(typed any) bool {
	switch w := typed.(type) {
	case *appsv1beta1.StatefulSet:
		return w.GetPodUpdatePolicy() == appsv1beta1.RecreatePodUpdateStrategyType
	case *appsv1beta1.CloneSet:
		return w.GetPodUpdatePolicy() == appsv1beta1.RecreatePodUpdateStrategyType
	default:
		return false
	}
}
