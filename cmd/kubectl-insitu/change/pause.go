// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/insitu-dev/insitu/apis/native"
)

// Pause keeps pods from starting their update. Those that have started it end it.
func Pause() Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{Done: "paused", Nothing: "already paused"}
		view, err := w.view()
		if err != nil {
			return outcome, err
		}
		if !w.isDriven() {
			return outcome, w.errNotDriven("a pause of the update", w.kubectlPauses("pause"))
		}
		if view.NotRolling != "" {
			return outcome, fmt.Errorf("there is nothing to pause: %s", view.NotRolling)
		}
		if view.Paused {
			return outcome, nil
		}
		if !w.Kind.IsOurs() {
			w.setAnnotation(native.PausedAnnotation, "true")
			if !w.isHeld() && view.Replacing {
				outcome.Notes = append(outcome.Notes, fmt.Sprintf(
					"Kubernetes is replacing pods of %s now, which this does not stop%s; it holds for the next update in place", w, w.kubectlPauses("pause")))
			}
			return outcome, nil
		}
		return outcome, w.writePaused(view.Parameters)
	}
}

// writePaused pauses a workload of ours, in the first of the places for parameters. Another
// place that says that it is not paused has to say the same.
func (w *Workload) writePaused(places [][]string) error {
	for i, parameters := range places {
		path := field(parameters, "paused")
		if _, isThere, _ := unstructured.NestedFieldNoCopy(w.Object, path...); i > 0 && !isThere {
			continue
		}
		if err := unstructured.SetNestedField(w.Object, true, path...); err != nil {
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
		view, err := w.view()
		if err != nil {
			return outcome, err
		}
		for _, parameters := range view.Parameters {
			unstructured.RemoveNestedField(w.Object, field(parameters, "paused")...)
		}
		if !w.Kind.IsOurs() {
			w.setAnnotation(native.PausedAnnotation, "")
		}
		if view.PausedByUser {
			unstructured.RemoveNestedField(w.Object, "spec", "paused")
		}
		return outcome, nil
	}
}

// kubectlPauses says how a pause goes without Insitu, for kinds that have one.
func (w *Workload) kubectlPauses(verb string) string {
	if !w.Kind.KubectlPauses {
		return ""
	}
	return fmt.Sprintf("; without Insitu: kubectl rollout %s %s", verb, w)
}

// field returns the path of a parameter.
func field(parameters []string, name string) []string {
	return append(slices.Clone(parameters), name)
}
