// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Resources are requests and limits that containers are to have. What is not named stays.
type Resources struct {
	// Containers is a name, or a pattern such as *. If it is empty, all containers are
	// meant that run along: init containers that run once are not, since they cannot
	// change in place.
	Containers       string
	Requests, Limits corev1.ResourceList
}

// ParseResources reads requests or limits of the form cpu=100m,memory=1Gi.
func ParseResources(text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	if text == "" {
		return list, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("found %q: accepted is RESOURCE=AMOUNT, such as cpu=100m,memory=1Gi", part)
		}
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("found %q: accepted are amounts such as 100m, 2, 512Mi, 1Gi", part)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// SetResources gives containers other requests and limits, as kubectl set resources does.
func SetResources(wanted Resources) Edit {
	return func(_ context.Context, w *Workload) (Outcome, error) {
		outcome := Outcome{Done: "resource requirements updated", Nothing: "resource requirements already set"}
		if len(wanted.Requests)+len(wanted.Limits) == 0 {
			return outcome, errors.New("found neither --requests nor --limits: accepted is one of them, or both")
		}
		found := false
		for _, c := range w.containers() {
			is, err := wanted.isFor(c)
			if err != nil {
				return outcome, err
			}
			if !is {
				continue
			}
			found = true
			if err := errors.Join(setAmounts(c, "requests", wanted.Requests), setAmounts(c, "limits", wanted.Limits)); err != nil {
				return outcome, err
			}
		}
		if !found {
			return outcome, w.errNoContainer(wanted.Containers)
		}
		outcome.Notes = w.notesOnRollout()
		return outcome, nil
	}
}

// isFor reports whether a container is meant.
func (r Resources) isFor(c container) (bool, error) {
	if r.Containers == "" {
		return !c.runsOnce, nil
	}
	is, err := path.Match(r.Containers, c.name)
	if err != nil {
		return false, fmt.Errorf("found containers %q: accepted are a name, and a pattern with *", r.Containers)
	}
	return is, nil
}

// setAmounts sets amounts of a container. One that is the same stays as it is spelled.
func setAmounts(c container, list string, amounts corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		wanted := amounts[name]
		text, _, _ := unstructured.NestedFieldNoCopy(c.fields, "resources", list, string(name))
		if present, err := resource.ParseQuantity(fmt.Sprint(text)); err == nil && present.Cmp(wanted) == 0 {
			continue
		}
		if err := unstructured.SetNestedField(c.fields, wanted.String(), "resources", list, string(name)); err != nil {
			return fmt.Errorf("set %s.%s of container %s: %w", list, name, c.name, err)
		}
	}
	return nil
}
