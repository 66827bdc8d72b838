// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCloneSetRefusedOnUpdate(t *testing.T) {
	c := strictClient(t)

	cases := map[string]struct {
		before, change string
		want           []string
	}{
		"selector": {
			"",
			`spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}}}`,
			[]string{"spec.selector", "selector cannot be changed"},
		},
		"selector with a new expression": {
			"",
			`spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}`,
			[]string{"spec.selector", "selector cannot be changed"},
		},
		"label that the selector needs": {
			"",
			`spec: {template: {metadata: {labels: {app: other}}}}`,
			[]string{"spec.template.metadata.labels", "every label of selector.matchLabels"},
		},
		"partition nested, where it is written flat": {
			at(flat, `{type: InPlaceIfPossible, partition: 3}`),
			at(nested, `{partition: 1}`),
			[]string{flat + ".partition", "updateStrategy.partition 3 and updateStrategy.rollingUpdate.partition 1 disagree: keep one"},
		},
		"partition flat, where it is written nested": {
			at(flat, `{type: RollingUpdate, rollingUpdate: {partition: 5}}`),
			at(flat, `{partition: 3}`),
			[]string{flat + ".partition", "updateStrategy.partition 3 and updateStrategy.rollingUpdate.partition 5 disagree: keep one"},
		},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				object := patchOf(t, validCloneSet, version, test.before)
				created(t, c, object)

				err := c.Update(t.Context(), mergePatch(t, object, test.change))
				assertRefused(t, err, test.want...)
			})
		}
	}
}

// TestCloneSetAcceptedOnUpdate changes every field that may change, and those
// that must not be in the way of a rollback.
func TestCloneSetAcceptedOnUpdate(t *testing.T) {
	c := strictClient(t)

	const claim = `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}}]}`

	cases := map[string]struct{ before, change string }{
		"replicas":       {"", `spec: {replicas: 0}`},
		"image":          {"", `spec: {template: {spec: {containers: [{name: main, image: "nginx:latest"}]}}}`},
		"labels":         {"", `spec: {template: {metadata: {labels: {version: "2"}}}}`},
		"history":        {"", `spec: {revisionHistoryLimit: 3}`},
		"hooks":          {"", `spec: {lifecycle: {preDelete: {finalizersHandler: [example.io/a]}}}`},
		"scale strategy": {"", `spec: {scaleStrategy: {podsToDelete: [a], maxUnavailable: 1}}`},
		"ready seconds":  {"", `spec: {minReadySeconds: 3, progressDeadlineSeconds: 30}`},
		"on delete":      {"", at(flat, `{type: OnDelete}`)},
		"claims added":   {"", claim},
		"claims removed": {claim, `spec: {volumeClaimTemplates: null}`},
		"claim shrunk":   {claim, `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`},
		"from flat to nested": {
			at(flat, `{type: InPlaceIfPossible, partition: 3}`),
			at(flat, `{type: RollingUpdate, partition: null, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 0}}`),
		},
		"from nested to flat": {
			at(flat, `{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3}}`),
			at(flat, `{type: InPlaceIfPossible, partition: 0, rollingUpdate: null}`),
		},
		"in place only, with what cannot go in place": {
			at(flat, `{type: InPlaceOnly}`),
			`spec: {template: {spec: {containers: [{name: main, image: a, env: [{name: A, value: b}]}, {name: second, image: b}]}}}`,
		},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				object := patchOf(t, validCloneSet, version, test.before)
				created(t, c, object)
				must(t, c.Update(t.Context(), mergePatch(t, object, test.change), client.DryRunAll))
			})
		}
	}
}
