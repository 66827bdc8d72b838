// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// Restart has all containers that run restarted, or those of the given names. The time is
// written to the template, so that it is a revision, and rolled out as one.
func Restart(names []string, now time.Time) Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		at := now.UTC().Format(time.RFC3339)
		outcome := Outcome{Nothing: "restarted in this very second"}
		if len(names) == 0 {
			outcome.Done = "restarted"
			err := w.setTemplateAnnotation(inplace.RestartedAtAnnotation, at)
			outcome.Notes = w.notesOnRollout()
			return outcome, err
		}
		if !w.isDriven() {
			return outcome, w.errNotDriven("a restart of some containers", "; to have all pods recreated instead, leave out -c")
		}
		outcome.Done = "restarted: " + strings.Join(names, ", ")
		for _, name := range names {
			if err := w.restartable(name); err != nil {
				return outcome, err
			}
			if err := w.setTemplateAnnotation(appsv1beta1.RestartAnnotationPrefix+name, at); err != nil {
				return outcome, err
			}
		}
		outcome.Notes = w.notesOnRollout()
		return outcome, nil
	}
}

// restartable returns an error if no container of the name is one that can be restarted.
func (w *Workload) restartable(name string) error {
	containers := w.containers()
	i := slices.IndexFunc(containers, func(c container) bool { return c.name == name })
	switch {
	case i < 0:
		return w.errNoContainer(name)
	case containers[i].runsOnce:
		return fmt.Errorf("container %s is an init container without restartPolicy Always: it has ended before the others started, and does not run again", name)
	default:
		return nil
	}
}
