// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestWhatIsStoredOfACloneSetCanBeRead is TestWhatIsStoredCanBeRead for the fields
// that only a CloneSet has.
func TestWhatIsStoredOfACloneSetCanBeRead(t *testing.T) {
	c := strictClient(t)

	patches := map[string]string{
		"replicas beyond int32":        `spec: {replicas: 5000000000}`,
		"ready seconds beyond int32":   `spec: {minReadySeconds: 2147483648}`,
		"ready seconds with exponent":  `spec: {minReadySeconds: 1e3}`,
		"deadline beyond int32":        `spec: {progressDeadlineSeconds: 2147483648}`,
		"deadline of 2^31-1":           `spec: {progressDeadlineSeconds: 2147483647}`,
		"scale maxUnavailable of 2^31": at("spec.scaleStrategy", `{maxUnavailable: 2147483648}`),
		"reuse in words":               at("spec.scaleStrategy", `{enablePVCReuse: "true"}`),
		"reuse null":                   at("spec.scaleStrategy", `{enablePVCReuse: null}`),
		"a list of nothing":            at("spec.scaleStrategy", `{podsToDelete: []}`),
		"a pod that is a number":       at("spec.scaleStrategy", `{podsToDelete: [1]}`),
	}

	for _, path := range []string{flat, nested} {
		for name, fields := range map[string]string{
			"partition beyond int32":    `{partition: 5000000000}`,
			"partition with exponent":   `{partition: 1e3}`,
			"partition with fraction":   `{partition: 1.5}`,
			"partition of 2^31-1":       `{partition: 2147483647}`,
			"maxUnavailable beyond":     `{maxUnavailable: 5000000000}`,
			"maxSurge beyond int32":     `{maxSurge: 2147483648}`,
			"maxSurge a list":           `{maxSurge: [1]}`,
			"maxSurge a boolean":        `{maxSurge: true}`,
			"paused null":               `{paused: null}`,
			"nothing to scatter":        `{scatterStrategy: []}`,
			"scattered by a number":     `{scatterStrategy: [{key: a, value: 1}]}`,
			"grace period beyond int32": `{inPlaceUpdateStrategy: {gracePeriodSeconds: 5000000000}}`,
			"weight beyond int32":       `{priorityStrategy: {weightPriority: [{weight: 5000000000, matchSelector: {matchLabels: {a: b}}}]}}`,
			"empty order and weight":    `{priorityStrategy: {weightPriority: [], orderPriority: []}}`,
		} {
			patches[path+" "+name] = at(path, fields)
		}
	}

	read := 0

	for name, patch := range patches {
		t.Run(name, func(t *testing.T) {
			object := patchOf(t, validCloneSet, appsv1beta1.GroupVersion.String(), patch)
			if err := c.Create(t.Context(), object); err != nil {
				assertRefused(t, err)

				return
			}

			defer func() { must(t, c.Delete(t.Context(), object)) }()

			read++

			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), &appsv1beta1.CloneSet{}); err != nil {
				t.Errorf("the object was stored and cannot be read: %v", err)
			}
		})
	}

	if read == 0 || read == len(patches) {
		t.Errorf("%d of %d values were accepted, want some", read, len(patches))
	}
}
