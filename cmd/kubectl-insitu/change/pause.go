// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// Pause keeps pods from starting their update. Those that have started it end it.
func Pause() Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{Done: "paused", Nothing: "already paused"}
		typed, err := w.typed()
		if err != nil {
			return outcome, err
		}
		if !w.isDriven() {
			return outcome, w.errNotDriven("a pause of the update", w.kubectlPauses("pause"))
		}
		if why := notRolling(typed); why != "" {
			return outcome, fmt.Errorf("there is nothing to pause: %s", why)
		}
		if isPaused(typed) {
			return outcome, nil
		}
		if !w.isOurs() {
			w.setAnnotation(native.PausedAnnotation, "true")
			if !w.isHeld() && isReplacing(typed) {
				outcome.Notes = append(outcome.Notes, fmt.Sprintf(
					"Kubernetes is replacing pods of %s now, which this does not stop%s; it holds for the next update in place", w, w.kubectlPauses("pause")))
			}
			return outcome, nil
		}
		return outcome, w.writePaused(typed)
	}
}

// isReplacing reports whether Kubernetes is in the middle of a rollout.
func isReplacing(typed any) bool {
	switch w := typed.(type) {
	case *appsv1.Deployment:
		return w.Status.UpdatedReplicas < w.Status.Replicas
	case *appsv1.StatefulSet:
		return w.Status.UpdateRevision != w.Status.CurrentRevision
	case *appsv1.DaemonSet:
		return w.Status.UpdatedNumberScheduled < w.Status.DesiredNumberScheduled
	default:
		return false
	}
}

// writePaused pauses a workload of ours. A CloneSet that says somewhere that it is not
// paused has to say the same there.
func (w *Workload) writePaused(typed any) error {
	places := [][]string{parametersOf(typed)}
	for _, other := range [][]string{flatParameters, nestedParameters} {
		if _, isThere, _ := unstructured.NestedFieldNoCopy(w.Object, field(other, "paused")...); isThere {
			places = append(places, other)
		}
	}
	for _, parameters := range places {
		if err := unstructured.SetNestedField(w.Object, true, field(parameters, "paused")...); err != nil {
			return err
		}
	}
	return nil
}

// Resume ends a pause.
func Resume() Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{Done: "resumed", Nothing: "not paused"}
		if !w.isDriven() {
			return outcome, w.errNotDriven("a pause of the update", w.kubectlPauses("resume"))
		}
		if w.isOurs() {
			for _, parameters := range [][]string{flatParameters, nestedParameters} {
				unstructured.RemoveNestedField(w.Object, field(parameters, "paused")...)
			}
			return outcome, nil
		}
		w.setAnnotation(native.PausedAnnotation, "")
		typed, err := w.typed()
		if err != nil {
			return outcome, err
		}
		if d, ok := typed.(*appsv1.Deployment); ok && native.IsPausedByUser(d) {
			unstructured.RemoveNestedField(w.Object, "spec", "paused")
		}
		return outcome, nil
	}
}

// kubectlPauses says how a pause goes without Insitu, for kinds that have one.
func (w *Workload) kubectlPauses(verb string) string {
	if w.Kind.Kind != "Deployment" {
		return ""
	}
	return fmt.Sprintf("; without Insitu: kubectl rollout %s %s", verb, w)
}

// isPaused reports whether updates are paused.
func isPaused(typed any) bool {
	switch w := typed.(type) {
	case *appsv1beta1.StatefulSet:
		return w.IsPaused()
	case *appsv1beta1.CloneSet:
		return w.IsPaused()
	case client.Object:
		return w.GetAnnotations()[native.PausedAnnotation] == "true"
	default:
		return false
	}
}

// Where the parameters of an update strategy are.
var (
	flatParameters   = []string{"spec", "updateStrategy"}
	nestedParameters = []string{"spec", "updateStrategy", "rollingUpdate"}
)

// field returns the path of a parameter.
func field(parameters []string, name string) []string {
	return append(slices.Clone(parameters), name)
}

// parametersOf returns where a parameter of the update strategy is written: a CloneSet
// has two places, of which the user has chosen one.
func parametersOf(typed any) []string {
	set, ok := typed.(*appsv1beta1.CloneSet)
	if !ok {
		return nestedParameters
	}
	strategy := set.Spec.UpdateStrategy
	switch strategy.Type { //nolint:exhaustive // the other types are those of flat parameters
	case appsv1beta1.RollingUpdateCloneSetUpdateStrategyType:
		return nestedParameters
	case "", appsv1beta1.OnDeleteCloneSetUpdateStrategyType:
		if strategy.RollingUpdate != nil || equality.Semantic.DeepEqual(strategy.CloneSetUpdateParameters, appsv1beta1.CloneSetUpdateParameters{}) {
			return nestedParameters
		}
	}
	return flatParameters
}
