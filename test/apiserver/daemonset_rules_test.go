// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// validDaemonSet is the smallest set that the API server accepts.
const validDaemonSet = `
kind: DaemonSet
metadata: {name: sample, namespace: default}
spec:
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec:
      containers: [{name: main, image: "nginx:alpine"}]
`

func TestDaemonSetRefusedOnCreate(t *testing.T) {
	testRefusedOnCreate(t, validDaemonSet, map[string]map[string]refusal{
		"common":   daemonSetCommonRefusals(),
		"template": templateRefusals(),
		"hooks":    hookRefusals(),
		"strategy": daemonSetStrategyRefusals(),
		"in place": inPlaceRefusals(nested + ".inPlaceUpdateStrategy"),
		"resize":   resizeRefusals(nested + ".inPlaceUpdateStrategy.resize"),
	})
}

// daemonSetCommonRefusals are those of all kinds, but for what has to do with replicas. Its name
// may be longer: no label holds it.
func daemonSetCommonRefusals() map[string]refusal {
	common := commonRefusals()
	delete(common, "replicas no number")
	delete(common, "negative replicas")
	common["name too long"] = refusal{
		"metadata: {name: " + strings.Repeat("a", 241) + "}", []string{"metadata.name must be at most 240 characters", "names of revisions"},
	}
	return common
}

func daemonSetStrategyRefusals() map[string]refusal {
	const both = "one of maxUnavailable and maxSurge must be 0 or absent"
	return map[string]refusal{
		"unknown type":             {at(flat, `{type: Recreate}`), []string{flat + ".type", `"RollingUpdate", "OnDelete"`}},
		"unknown rolling type":     {at(nested, `{rollingUpdateType: ReCreate}`), []string{nested + ".rollingUpdateType", `"Standard", "Surging", "InPlaceIfPossible", "InPlaceOnly"`}},
		"negative partition":       {at(nested, `{partition: -1}`), []string{nested + ".partition", "a number from 0", "found -1"}},
		"partition of 101%":        {at(nested, `{partition: "101%"}`), []string{nested + ".partition", `to "100%"`, `found "101%"`}},
		"number in quotes":         {at(nested, `{maxUnavailable: "5"}`), []string{nested + ".maxUnavailable", `found "5"`}},
		"maxUnavailable of 101%":   {at(nested, `{maxUnavailable: "101%"}`), []string{nested + ".maxUnavailable", `found "101%"`}},
		"negative maxSurge":        {at(nested, `{maxSurge: -1}`), []string{nested + ".maxSurge", "found -1"}},
		"unavailable and surge":    {at(nested, `{maxUnavailable: 1, maxSurge: 1}`), []string{nested, both}},
		"both in percent":          {at(nested, `{maxUnavailable: "10%", maxSurge: "10%"}`), []string{nested, both}},
		"neither":                  {at(nested, `{maxUnavailable: 0, maxSurge: 0}`), []string{nested, "must not both be 0"}},
		"none unavailable":         {at(nested, `{maxUnavailable: "0%"}`), []string{nested, "must not both be 0"}},
		"a surge in place":         {at(nested, `{rollingUpdateType: InPlaceIfPossible, maxSurge: 1}`), []string{nested + ".maxSurge", "InPlaceIfPossible", "changed where they are"}},
		"a surge in place only":    {at(nested, `{rollingUpdateType: InPlaceOnly, maxSurge: "1%"}`), []string{nested + ".maxSurge", "InPlaceOnly"}},
		"Surging with unavailable": {at(nested, `{rollingUpdateType: Surging, maxUnavailable: 1}`), []string{nested + ".maxUnavailable", "Surging"}},
		"negative burst":           {`spec: {burstReplicas: -1}`, []string{"spec.burstReplicas", "found -1"}},
		"negative minReadySeconds": {`spec: {minReadySeconds: -1}`, []string{"spec.minReadySeconds", "greater than or equal to 0"}},
		"negative history":         {`spec: {revisionHistoryLimit: -1}`, []string{"spec.revisionHistoryLimit", "greater than or equal to 0"}},
	}
}

// TestDaemonSetAccepted holds what the rules must not refuse.
func TestDaemonSetAccepted(t *testing.T) {
	c := strictClient(t)
	for name, patch := range map[string]string{
		"nothing":                  "",
		"a name with a dot":        `metadata: {name: node.agent}`,
		"OnDelete":                 at(flat, `{type: OnDelete}`),
		"OnDelete and paused":      at(flat, `{type: OnDelete, rollingUpdate: {paused: true}}`),
		"Standard":                 at(nested, `{rollingUpdateType: Standard, maxUnavailable: "20%"}`),
		"a surge":                  at(nested, `{maxSurge: 1}`),
		"a surge, none out":        at(nested, `{maxSurge: "100%", maxUnavailable: 0}`),
		"no surge":                 at(nested, `{maxSurge: 0, maxUnavailable: 2}`),
		"Surging":                  at(nested, `{rollingUpdateType: Surging}`),
		"Surging, none out":        at(nested, `{rollingUpdateType: Surging, maxUnavailable: 0}`),
		"in place":                 at(nested, `{rollingUpdateType: InPlaceIfPossible, maxUnavailable: 5, partition: "50%", paused: false}`),
		"in place only, no surge":  at(nested, `{rollingUpdateType: InPlaceOnly, maxSurge: "0%"}`),
		"canary nodes":             at(nested, `{selector: {matchLabels: {canary: "yes"}}}`),
		"partition scaling":        `spec: {scaleStrategy: {partitionedScaling: true}}`,
		"burst in percent":         `spec: {burstReplicas: "10%"}`,
		"ready after a long while": `spec: {minReadySeconds: 3600}`,
		"all hooks":                `spec: {lifecycle: {preDelete: {labelsHandler: {a: b}}, inPlaceUpdate: {labelsHandler: {a: b}}, preNormal: {labelsHandler: {a: b}}}}`,
	} {
		for _, version := range versions() {
			t.Run(version+"/"+name, func(t *testing.T) {
				must(t, c.Create(t.Context(), patchOf(t, validDaemonSet, version, patch), client.DryRunAll))
			})
		}
	}
}

// What clients read without asking, and what is not filled in: a default of one of
// maxUnavailable and maxSurge would contradict the other.
func TestDaemonSetDefaults(t *testing.T) {
	g, c := NewWithT(t), strictClient(t)
	object := patchOf(t, validDaemonSet, appsv1beta1.GroupVersion.String(), at(nested, "{}"))
	must(t, c.Create(t.Context(), object, client.DryRunAll))
	spec := object.Object["spec"].(map[string]any)
	g.Expect(spec).To(And(HaveKeyWithValue("revisionHistoryLimit", int64(10)), HaveKeyWithValue("burstReplicas", int64(250))))
	g.Expect(spec["updateStrategy"]).To(Equal(map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"rollingUpdateType": "Standard"}}))
	g.Expect(spec).NotTo(HaveKey("scaleStrategy"))
}

// What cannot be changed of a set that exists.
func TestDaemonSetRefusedOnUpdate(t *testing.T) {
	c := strictClient(t)
	object := patchOf(t, validDaemonSet, appsv1beta1.GroupVersion.String(), `metadata: {name: ds-selector}`)
	created(t, c, object)
	other := patchOf(t, validDaemonSet, appsv1beta1.GroupVersion.String(),
		`{metadata: {name: ds-selector}, spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}}}}`)
	other.SetResourceVersion(object.GetResourceVersion())
	assertRefused(t, c.Update(t.Context(), other), "spec.selector", "cannot be changed")
}
