// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRefusedOnUpdate(t *testing.T) {
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
		"selector narrowed": {
			`spec: {template: {metadata: {labels: {tier: db}}}}`,
			`spec: {selector: {matchLabels: {tier: db}}}`,
			[]string{"spec.selector", "selector cannot be changed"},
		},
		"selector with a new expression": {
			"",
			`spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}`,
			[]string{"spec.selector", "selector cannot be changed"},
		},
		"selector without its expression": {
			`spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}`,
			`spec: {selector: {matchExpressions: null}}`,
			[]string{"spec.selector", "selector cannot be changed"},
		},
		"label that the selector needs": {
			"",
			`spec: {template: {metadata: {labels: {app: other}}}}`,
			[]string{"spec.template.metadata.labels", "every label of selector.matchLabels"},
		},
		"service name": {
			`spec: {serviceName: a}`,
			`spec: {serviceName: b}`,
			[]string{"spec.serviceName", "serviceName cannot be changed", `it was "a"`},
		},
		"service name added": {
			"",
			`spec: {serviceName: b}`,
			[]string{"spec.serviceName", "serviceName cannot be changed", `it was ""`},
		},
		"service name removed": {
			`spec: {serviceName: a}`,
			`spec: {serviceName: null}`,
			[]string{"spec.serviceName", "serviceName cannot be changed", `it was "a"`},
		},
		"management policy": {
			"",
			`spec: {podManagementPolicy: OrderedReady}`,
			[]string{"spec.podManagementPolicy", "cannot be changed", "it was Parallel, found OrderedReady"},
		},
		"management policy removed": {
			"",
			`spec: {podManagementPolicy: null}`,
			[]string{"spec.podManagementPolicy", "cannot be changed", "it was Parallel, found OrderedReady"},
		},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				object := patched(t, version, test.before)
				created(t, c, object)

				err := c.Update(t.Context(), mergePatch(t, object, test.change))
				assertRefused(t, err, test.want...)
			})
		}
	}
}

// TestAcceptedOnUpdate changes every field that may change, and those that must
// not be in the way of a rollback.
func TestAcceptedOnUpdate(t *testing.T) {
	c := strictClient(t)

	const claim = `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}}]}`

	cases := map[string]struct{ before, change string }{
		"replicas":             {"", `spec: {replicas: 0}`},
		"image":                {"", `spec: {template: {spec: {containers: [{name: main, image: "nginx:latest"}]}}}`},
		"labels":               {"", `spec: {template: {metadata: {labels: {version: "2"}}}}`},
		"history":              {"", `spec: {revisionHistoryLimit: 3}`},
		"reserved":             {"", `spec: {reserveOrdinals: [1, "3-5"]}`},
		"ordinals":             {"", `spec: {ordinals: {start: 2}}`},
		"hooks":                {"", `spec: {lifecycle: {preDelete: {finalizersHandler: [example.io/a]}}}`},
		"scale strategy":       {"", `spec: {scaleStrategy: {maxUnavailable: 1}}`},
		"retention":            {"", `spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}`},
		"update strategy":      {"", `spec: {updateStrategy: {type: OnDelete}}`},
		"claims added":         {"", claim},
		"claims removed":       {claim, `spec: {volumeClaimTemplates: null}`},
		"claim shrunk":         {claim, `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`},
		"claim strategy":       {"", `spec: {volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}}`},
		"empty selector parts": {"", `spec: {selector: {matchExpressions: []}}`},
		"in place only, with what cannot go in place": {
			`spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}}`,
			`spec: {template: {spec: {containers: [{name: main, image: a, env: [{name: A, value: b}]}, {name: second, image: b}]}}}`,
		},
		"in place without the gate": {"", `spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}}`},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				object := patched(t, version, test.before)
				created(t, c, object)
				must(t, c.Update(t.Context(), mergePatch(t, object, test.change), client.DryRunAll))
			})
		}
	}
}
