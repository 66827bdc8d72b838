// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

func templateRefusals() map[string]refusal {
	return map[string]refusal{
		"none":          {`spec: {template: null}`, []string{"spec.template: Required value"}},
		"no pod spec":   {`spec: {template: {spec: null}}`, []string{"spec.template.spec: Required value"}},
		"no containers": {`spec: {template: {spec: {containers: null}}}`, []string{"spec.template.spec.containers: Required value"}},
		"empty containers": {
			`spec: {template: {spec: {containers: []}}}`,
			[]string{"spec.template.spec.containers", "should have at least 1 items"},
		},
		"container without image": {
			`spec: {template: {spec: {containers: [{name: main}]}}}`,
			[]string{"spec.template.spec.containers[0].image: Required value"},
		},
		"container with an empty image": {
			`spec: {template: {spec: {containers: [{name: main, image: ""}]}}}`,
			[]string{"spec.template.spec.containers[0].image", "at least 1 chars long"},
		},
		"container without name": {
			`spec: {template: {spec: {containers: [{image: a}]}}}`,
			[]string{"spec.template.spec.containers[0].name: Required value"},
		},
		"container name no DNS label": {
			`spec: {template: {spec: {containers: [{name: Main_1, image: a}]}}}`,
			[]string{"spec.template.spec.containers[0].name", "must be a DNS label", `found "Main_1"`},
		},
		"container name twice": {
			`spec: {template: {spec: {containers: [{name: main, image: a}, {name: main, image: b}]}}}`,
			[]string{"spec.template.spec.containers[1]", "Duplicate value", "main"},
		},
		"init container name twice": {
			`spec: {template: {spec: {initContainers: [{name: init, image: a}, {name: init, image: b}]}}}`,
			[]string{"spec.template.spec.initContainers[1]", "Duplicate value"},
		},
		"env name twice": {
			`spec: {template: {spec: {containers: [{name: main, image: a, env: [{name: A}, {name: A}]}]}}}`,
			[]string{"spec.template.spec.containers[0].env[1]", "Duplicate value"},
		},
		"ephemeral containers": {
			`spec: {template: {spec: {ephemeralContainers: [{name: debug, image: a}]}}}`,
			[]string{"spec.template.spec.ephemeralContainers", "must have at most 0 items"},
		},
		"restart policy": {
			`spec: {template: {spec: {restartPolicy: OnFailure}}}`,
			[]string{"spec.template.spec.restartPolicy", "must be Always or absent", "found OnFailure"},
		},
		"active deadline": {
			`spec: {template: {spec: {activeDeadlineSeconds: 60}}}`,
			[]string{"spec.template.spec.activeDeadlineSeconds", "must be absent"},
		},
		"label value": {
			`spec: {template: {metadata: {labels: {version: "-1"}}}}`,
			[]string{"spec.template.metadata.labels[version]", "must begin and end with a letter or digit", `found "-1"`},
		},
		"label no string": {
			`spec: {template: {metadata: {labels: {version: 1}}}}`,
			[]string{"spec.template.metadata.labels.version", "must be of type string"},
		},
		"quantity in words": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: lots}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory", "should match"},
		},
		"quantity a list": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: [1Gi]}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory"},
		},
		"quantity an empty list": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: []}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory"},
		},
		"quantity an object": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: {size: 1Gi}}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory"},
		},
		"quantity an empty object": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: {}}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory"},
		},
		"quantity a boolean": {
			`spec: {template: {spec: {containers: [{name: main, image: a, resources: {limits: {memory: true}}}]}}}`,
			[]string{"spec.template.spec.containers[0].resources.limits.memory"},
		},
	}
}
