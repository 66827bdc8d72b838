// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
)

// validCloneSet is the smallest set that the API server accepts.
const validCloneSet = `
kind: CloneSet
metadata: {name: sample, namespace: default}
spec:
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec:
      containers: [{name: main, image: "nginx:alpine"}]
`

// The places where the parameters of an update can be written.
const (
	flat   = "spec.updateStrategy"
	nested = "spec.updateStrategy.rollingUpdate"
)

func TestCloneSetRefusedOnCreate(t *testing.T) {
	testRefusedOnCreate(t, validCloneSet, map[string]map[string]refusal{
		"common":          commonRefusals(),
		"template":        templateRefusals(),
		"claims":          claimTemplateRefusals(),
		"hooks":           hookRefusals(),
		"progress":        progressRefusals(),
		"scale":           cloneSetScaleRefusals(),
		"strategy":        cloneSetStrategyRefusals(),
		"disagreement":    cloneSetDisagreements(),
		"flat":            cloneSetParameterRefusals(flat),
		"nested":          cloneSetParameterRefusals(nested),
		"flat priority":   priorityRefusals(flat + ".priorityStrategy"),
		"nested priority": priorityRefusals(nested + ".priorityStrategy"),
		"flat in place":   inPlaceRefusals(flat + ".inPlaceUpdateStrategy"),
		"nested in place": inPlaceRefusals(nested + ".inPlaceUpdateStrategy"),
		"flat resize":     resizeRefusals(flat + ".inPlaceUpdateStrategy.resize"),
		"nested resize":   resizeRefusals(nested + ".inPlaceUpdateStrategy.resize"),
	})
}

func progressRefusals() map[string]refusal {
	return map[string]refusal{
		"negative minReadySeconds": {
			`spec: {minReadySeconds: -1}`,
			[]string{"spec.minReadySeconds", "greater than or equal to 0"},
		},
		"deadline 0": {
			`spec: {progressDeadlineSeconds: 0}`,
			[]string{"spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
		},
		"deadline of minReadySeconds": {
			`spec: {progressDeadlineSeconds: 10, minReadySeconds: 10}`,
			[]string{"spec.progressDeadlineSeconds", "must be greater than minReadySeconds"},
		},
	}
}

func cloneSetScaleRefusals() map[string]refusal {
	return map[string]refusal{
		"pod to delete twice": {
			`spec: {scaleStrategy: {podsToDelete: [a, b, a]}}`,
			[]string{"spec.scaleStrategy.podsToDelete[2]", `Duplicate value: "a"`},
		},
		"pod to delete without name": {
			`spec: {scaleStrategy: {podsToDelete: [""]}}`,
			[]string{"spec.scaleStrategy.podsToDelete[0]", "at least 1 chars long"},
		},
		"maxUnavailable 0": {
			`spec: {scaleStrategy: {maxUnavailable: 0}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", "a number from 1", "found 0"},
		},
		"maxUnavailable 0%": {
			`spec: {scaleStrategy: {maxUnavailable: "0%"}}`,
			[]string{"spec.scaleStrategy.maxUnavailable", `from "1%" to "100%"`, `found "0%"`},
		},
		"claims reused and not": {
			`spec: {scaleStrategy: {enablePVCReuse: true, disablePVCReuse: true}}`,
			[]string{"spec.scaleStrategy.disablePVCReuse", "contradict each other", "found both true"},
		},
		"claims not reused and reused": {
			`spec: {scaleStrategy: {enablePVCReuse: false, disablePVCReuse: false}}`,
			[]string{"spec.scaleStrategy.disablePVCReuse", "contradict each other", "found both false"},
		},
	}
}

func cloneSetStrategyRefusals() map[string]refusal {
	const inPlaceOnly = "maxSurge must be 0 or absent with InPlaceOnly"

	return map[string]refusal{
		"type unknown": {
			at(flat, `{type: Recreate}`),
			[]string{
				flat + ".type", `Unsupported value: "Recreate"`,
				`"RollingUpdate", "OnDelete", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`,
			},
		},
		"pod update policy unknown": {
			at(nested, `{podUpdatePolicy: InPlace}`),
			[]string{nested + ".podUpdatePolicy", `Unsupported value: "InPlace"`, `"ReCreate", "InPlaceIfPossible", "InPlaceOnly"`},
		},
		"pod update policy flat": {
			at(flat, `{podUpdatePolicy: InPlaceOnly}`),
			[]string{`unknown field "spec.updateStrategy.podUpdatePolicy"`},
		},
		"surge in place only, flat":              {at(flat, `{type: InPlaceOnly, maxSurge: 1}`), []string{flat, inPlaceOnly}},
		"surge in percent in place only, flat":   {at(flat, `{type: InPlaceOnly, maxSurge: "1%"}`), []string{flat, inPlaceOnly}},
		"surge in place only, nested":            {at(nested, `{podUpdatePolicy: InPlaceOnly, maxSurge: 1}`), []string{flat, inPlaceOnly}},
		"surge nested, in place only flat":       {at(flat, `{type: InPlaceOnly, rollingUpdate: {maxSurge: 1}}`), []string{flat, inPlaceOnly}},
		"surge flat, in place only nested":       {at(flat, `{maxSurge: 1, rollingUpdate: {podUpdatePolicy: InPlaceOnly}}`), []string{flat, inPlaceOnly}},
		"no budget, one part flat, other nested": {at(flat, `{maxSurge: 0, rollingUpdate: {maxUnavailable: 0}}`), []string{flat, "must not both be 0"}},
	}
}

// cloneSetDisagreements are the fields that are written in both places.
func cloneSetDisagreements() map[string]refusal {
	const priority = `{orderPriority: [{orderedKey: order}]}`

	return map[string]refusal{
		"policy": {
			at(flat, `{type: InPlaceIfPossible, rollingUpdate: {podUpdatePolicy: ReCreate}}`),
			[]string{nested + ".podUpdatePolicy", "type InPlaceIfPossible and updateStrategy.rollingUpdate.podUpdatePolicy ReCreate disagree"},
		},
		"partition": {
			at(flat, `{partition: 3, rollingUpdate: {partition: 5}}`),
			[]string{flat + ".partition", "updateStrategy.partition 3 and updateStrategy.rollingUpdate.partition 5 disagree: keep one"},
		},
		"partition in percent": {
			at(flat, `{type: ReCreate, partition: 3, rollingUpdate: {partition: "3%"}}`),
			[]string{flat + ".partition", "updateStrategy.partition 3 and updateStrategy.rollingUpdate.partition 3% disagree: keep one"},
		},
		"maxUnavailable": {
			at(flat, `{maxUnavailable: 3, rollingUpdate: {maxUnavailable: "30%"}}`),
			[]string{flat + ".maxUnavailable", "updateStrategy.maxUnavailable 3 and updateStrategy.rollingUpdate.maxUnavailable 30% disagree: keep one"},
		},
		"maxSurge": {
			at(flat, `{maxSurge: 3, rollingUpdate: {maxSurge: 5}}`),
			[]string{flat + ".maxSurge", "updateStrategy.maxSurge 3 and updateStrategy.rollingUpdate.maxSurge 5 disagree: keep one"},
		},
		"paused": {
			at(flat, `{paused: true, rollingUpdate: {paused: false}}`),
			[]string{flat + ".paused", "updateStrategy.paused and updateStrategy.rollingUpdate.paused disagree: keep one"},
		},
		"priority": {
			at(flat, `{priorityStrategy: `+priority+`, rollingUpdate: {priorityStrategy: `+priority+`}}`),
			[]string{flat + ".priorityStrategy", "priorityStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"},
		},
		"scatter": {
			at(flat, `{scatterStrategy: [{key: a, value: b}], rollingUpdate: {scatterStrategy: [{key: a, value: b}]}}`),
			[]string{flat + ".scatterStrategy", "scatterStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"},
		},
		"in place": {
			at(flat, `{inPlaceUpdateStrategy: {}, rollingUpdate: {inPlaceUpdateStrategy: {}}}`),
			[]string{flat + ".inPlaceUpdateStrategy", "inPlaceUpdateStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"},
		},
	}
}

// cloneSetParameterRefusals are those of the parameters of an update, wherever
// they are written.
func cloneSetParameterRefusals(path string) map[string]refusal {
	in := func(fields string) string { return at(path, fields) }
	budget := []string{flat, "maxUnavailable and maxSurge must not both be 0"}

	return map[string]refusal{
		"negative partition": {
			in(`{partition: -1}`),
			[]string{path + ".partition", "a number from 0", "found -1"},
		},
		"partition 101%": {
			in(`{partition: "101%"}`),
			[]string{path + ".partition", `from "0%" to "100%"`, `found "101%"`},
		},
		"partition without percent sign": {
			in(`{partition: "2"}`),
			[]string{path + ".partition", `found "2"`},
		},
		"negative maxUnavailable": {
			in(`{maxUnavailable: -1}`),
			[]string{path + ".maxUnavailable", "a number from 0", "found -1"},
		},
		"maxUnavailable 101%": {
			in(`{maxUnavailable: "101%"}`),
			[]string{path + ".maxUnavailable", `from "0%" to "100%"`, `found "101%"`},
		},
		"maxUnavailable in words": {
			in(`{maxUnavailable: half of them}`),
			[]string{path + ".maxUnavailable"},
		},
		"negative maxSurge": {
			in(`{maxSurge: -1}`),
			[]string{path + ".maxSurge", "a number from 0", "found -1"},
		},
		"maxSurge 000%": {
			in(`{maxSurge: "000%"}`),
			[]string{path + ".maxSurge", `from "0%" to "999%"`, `found "000%"`},
		},
		"no budget":            {in(`{maxUnavailable: 0, maxSurge: 0}`), budget},
		"no budget by default": {in(`{maxUnavailable: 0}`), budget},
		"no budget in percent": {in(`{maxUnavailable: "0%", maxSurge: "0%"}`), budget},
		"paused in words":      {in(`{paused: "yes"}`), []string{path + ".paused", "must be of type boolean"}},
		"scatter twice": {
			in(`{scatterStrategy: [{key: a, value: b}, {key: a, value: c}, {key: a, value: b}]}`),
			[]string{path + ".scatterStrategy", "must not hold the same key and value twice"},
		},
		"scatter without key": {
			in(`{scatterStrategy: [{value: b}]}`),
			[]string{path + ".scatterStrategy[0].key: Required value"},
		},
		"scatter with an empty key": {
			in(`{scatterStrategy: [{key: "", value: b}]}`),
			[]string{path + ".scatterStrategy[0].key", "at least 1 chars long"},
		},
		"scatter without value": {
			in(`{scatterStrategy: [{key: a}]}`),
			[]string{path + ".scatterStrategy[0].value: Required value"},
		},
	}
}
