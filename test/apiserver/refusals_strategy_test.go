// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

func strategyRefusals() map[string]refusal {
	return map[string]refusal{
		"type unknown": {
			`spec: {updateStrategy: {type: Recreate}}`,
			[]string{"spec.updateStrategy.type", `Unsupported value: "Recreate"`, `"RollingUpdate", "OnDelete"`},
		},
		"OnDelete with rollingUpdate": {
			`spec: {updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}}`,
			[]string{"spec.updateStrategy.rollingUpdate", "only accepted with type RollingUpdate", "found type OnDelete"},
		},
		"negative partition": {
			`spec: {updateStrategy: {rollingUpdate: {partition: -1}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.partition", "greater than or equal to 0"},
		},
		"partition in percent": {
			`spec: {updateStrategy: {rollingUpdate: {partition: "50%"}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.partition", "must be of type integer"},
		},
		"maxUnavailable 0": {
			`spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", "a number from 1", "found 0"},
		},
		"maxUnavailable 0%": {
			`spec: {updateStrategy: {rollingUpdate: {maxUnavailable: "0%"}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", `from "1%" to "100%"`, `found "0%"`},
		},
		"maxUnavailable 101%": {
			`spec: {updateStrategy: {rollingUpdate: {maxUnavailable: "101%"}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", `found "101%"`},
		},
		"maxUnavailable without percent sign": {
			`spec: {updateStrategy: {rollingUpdate: {maxUnavailable: "2"}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", `found "2"`},
		},
		"maxUnavailable in words": {
			`spec: {updateStrategy: {rollingUpdate: {maxUnavailable: half of them}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable"},
		},
		"pod update policy": {
			`spec: {updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlace}}}`,
			[]string{
				"spec.updateStrategy.rollingUpdate.podUpdatePolicy", `Unsupported value: "InPlace"`,
				`"ReCreate", "InPlaceIfPossible", "InPlaceOnly"`,
			},
		},
		"negative minReadySeconds": {
			`spec: {updateStrategy: {rollingUpdate: {minReadySeconds: -1}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.minReadySeconds", "greater than or equal to 0"},
		},
		"minReadySeconds over 300": {
			`spec: {updateStrategy: {rollingUpdate: {minReadySeconds: 301}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.minReadySeconds", "less than or equal to 300"},
		},
		"scale maxUnavailable 0": {
			`spec: {scaleStrategy: {maxUnavailable: 0}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", "a number from 1", "found 0"},
		},
		"scale maxUnavailable 0%": {
			`spec: {scaleStrategy: {maxUnavailable: "0%"}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", `found "0%"`},
		},
	}
}

func orderRefusals() map[string]refusal {
	return map[string]refusal{
		"management policy unknown": {
			`spec: {podManagementPolicy: Serial}`,
			[]string{"spec.podManagementPolicy", `Unsupported value: "Serial"`, `"OrderedReady", "Parallel"`},
		},
		"maxUnavailable 2 in order": {
			`spec: {podManagementPolicy: OrderedReady, updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", "must be 1 with podManagementPolicy OrderedReady", "found 2"},
		},
		"maxUnavailable in percent in the default order": {
			`spec: {podManagementPolicy: null, updateStrategy: {rollingUpdate: {maxUnavailable: "20%"}}}`,
			[]string{"spec.updateStrategy.rollingUpdate.maxUnavailable", "must be 1 with podManagementPolicy OrderedReady", "found 20%"},
		},
	}
}

// priorityRefusals are those of an order by labels in the field at a path.
func priorityRefusals(path string) map[string]refusal {
	in := func(fields string) string { return at(path, fields) }

	return map[string]refusal{
		"both priorities": {
			in(`{
				orderPriority: [{orderedKey: order}],
				weightPriority: [{weight: 1, matchSelector: {matchLabels: {app: sample}}}]}`),
			[]string{path, "exclude each other"},
		},
		"weight over 100": {
			in(`{weightPriority: [{weight: 101, matchSelector: {matchLabels: {app: sample}}}]}`),
			[]string{path + ".weightPriority[0].weight", "less than or equal to 100"},
		},
		"negative weight": {
			in(`{weightPriority: [{weight: -1, matchSelector: {matchLabels: {app: sample}}}]}`),
			[]string{path + ".weightPriority[0].weight", "greater than or equal to 0"},
		},
		"weight of everything": {
			in(`{weightPriority: [{weight: 1, matchSelector: {}}]}`),
			[]string{path + ".weightPriority[0].matchSelector", "must not be empty"},
		},
		"weight with unknown operator": {
			in(`{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: app, operator: Is}]}}]}`),
			[]string{path + ".weightPriority[0].matchSelector.matchExpressions[0].operator", `Unsupported value: "Is"`},
		},
		"weight without weight": {
			in(`{weightPriority: [{matchSelector: {matchLabels: {app: sample}}}]}`),
			[]string{path + ".weightPriority[0].weight: Required value"},
		},
		"weight without selector": {
			in(`{weightPriority: [{weight: 1}]}`),
			[]string{path + ".weightPriority[0].matchSelector: Required value"},
		},
		"weight with In and no values": {
			in(`{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{key: app, operator: In}]}}]}`),
			[]string{path + ".weightPriority[0].matchSelector.matchExpressions[0]", "need values", "found In"},
		},
		"weight with an expression without key": {
			in(`{weightPriority: [{weight: 1, matchSelector: {matchExpressions: [{operator: Exists}]}}]}`),
			[]string{path + ".weightPriority[0].matchSelector.matchExpressions[0].key: Required value"},
		},
		"weight with no label value": {
			in(`{weightPriority: [{weight: 1, matchSelector: {matchLabels: {app: "a b"}}}]}`),
			[]string{path + ".weightPriority[0].matchSelector.matchLabels[app]", `found "a b"`},
		},
		"order without key": {
			in(`{orderPriority: [{}]}`),
			[]string{path + ".orderPriority[0].orderedKey: Required value"},
		},
		"order by nothing": {
			in(`{orderPriority: [{orderedKey: ""}]}`),
			[]string{path + ".orderPriority[0].orderedKey", "at least 1 chars long"},
		},
		"order by no label key": {
			in(`{orderPriority: [{orderedKey: "a b"}]}`),
			[]string{path + ".orderPriority[0].orderedKey", "must be a label key", `found "a b"`},
		},
	}
}

// inPlaceRefusals are those of the details of in-place updates at a path.
func inPlaceRefusals(path string) map[string]refusal {
	in := func(fields string) string { return at(path, fields) }

	return map[string]refusal{
		"negative grace": {in(`{gracePeriodSeconds: -1}`), []string{path + ".gracePeriodSeconds", "greater than or equal to 0"}},
		"parallel pulls 0%": {
			in(`{imagePreDownloadParallelism: "0%"}`),
			[]string{path + ".imagePreDownloadParallelism", `found "0%"`},
		},
		"negative pull timeout": {
			in(`{imagePreDownloadTimeoutSeconds: -1}`),
			[]string{path + ".imagePreDownloadTimeoutSeconds", "greater than or equal to 0"},
		},
		"negative pods before pulls": {
			in(`{imagePreDownloadMinUpdatedReadyPods: -1}`),
			[]string{path + ".imagePreDownloadMinUpdatedReadyPods", "greater than or equal to 0"},
		},
		"keepReady twice": {in(`{keepReady: [log, log]}`), []string{path + ".keepReady[1]", `Duplicate value: "log"`}},
		"keepReady empty": {in(`{keepReady: [""]}`), []string{path + ".keepReady[0]", "at least 1 chars long"}},
		"budget unknown": {
			in(`{podDisruptionBudget: Maybe}`),
			[]string{path + ".podDisruptionBudget", `Unsupported value: "Maybe"`, `"Ignore", "Respect"`},
		},
		"deadline 0": {in(`{deadlineSeconds: 0}`), []string{path + ".deadlineSeconds", "greater than or equal to 1"}},
		"image pull policy": {
			in(`{imagePull: {policy: Always}}`),
			[]string{path + ".imagePull.policy", `Unsupported value: "Always"`, `"Require", "Prefer", "None"`},
		},
		"image pull timeout 0":     {in(`{imagePull: {timeoutSeconds: 0}}`), []string{path + ".imagePull.timeoutSeconds", "greater than or equal to 1"}},
		"image pull parallelism 0": {in(`{imagePull: {parallelism: 0}}`), []string{path + ".imagePull.parallelism", "greater than or equal to 1"}},
	}
}

// resizeRefusals are those of a policy for resizes at a path.
func resizeRefusals(path string) map[string]refusal {
	in := func(fields string) string { return at(path, fields) }

	return map[string]refusal{
		"onDeferred unknown":                 {in(`{onDeferred: Keep}`), []string{path + ".onDeferred", `Unsupported value: "Keep"`, `"Wait", "Recreate"`}},
		"onInfeasible unknown":               {in(`{onInfeasible: Wait}`), []string{path + ".onInfeasible", `Unsupported value: "Wait"`, `"Keep", "Recreate"`}},
		"onError unknown":                    {in(`{onError: Wait}`), []string{path + ".onError", `Unsupported value: "Wait"`, `"Keep", "Recreate"`}},
		"drift unknown":                      {in(`{drift: Ignore}`), []string{path + ".drift", `Unsupported value: "Ignore"`, `"Leave", "Enforce"`}},
		"timeout 0":                          {in(`{deferredTimeoutSeconds: 0}`), []string{path + ".deferredTimeoutSeconds", "greater than or equal to 1"}},
		"timeout with unit":                  {in(`{deferredTimeoutSeconds: 10m}`), []string{path + ".deferredTimeoutSeconds", "must be of type integer"}},
		"timeout out of range":               {in(`{deferredTimeoutSeconds: 2147483648}`), []string{path + ".deferredTimeoutSeconds", "2147483647"}},
		"maxConcurrent 0":                    {in(`{maxConcurrent: 0}`), []string{path + ".maxConcurrent", "a number from 1", "found 0"}},
		"maxConcurrent 0%":                   {in(`{maxConcurrent: "0%"}`), []string{path + ".maxConcurrent", `from "1%" to "100%"`, `found "0%"`}},
		"maxConcurrent 101%":                 {in(`{maxConcurrent: "101%"}`), []string{path + ".maxConcurrent", `found "101%"`}},
		"maxConcurrent without percent sign": {in(`{maxConcurrent: "2"}`), []string{path + ".maxConcurrent", `found "2"`}},
		"maxConcurrent in words":             {in(`{maxConcurrent: half of them}`), []string{path + ".maxConcurrent"}},
		"field unknown":                      {in(`{onRefused: Keep}`), []string{`unknown field "` + path + `.onRefused"`}},
	}
}
