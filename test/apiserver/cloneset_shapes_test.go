// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSamples applies what the documentation tells people to apply.
func TestSamples(t *testing.T) {
	c := strictClient(t)

	files, err := filepath.Glob("../../config/samples/*.yaml")
	must(t, err)

	if len(files) == 0 {
		t.Fatal("found no samples")
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)

			object := parse(t, string(raw))
			object.SetNamespace("default")
			must(t, c.Create(t.Context(), object, client.DryRunAll))
		})
	}
}

// TestCloneSetAccepted holds what the rules must not refuse.
func TestCloneSetAccepted(t *testing.T) {
	c := strictClient(t)

	patches := map[string]string{
		"nothing":                         "",
		"a name with a dot":               `metadata: {name: data.base}`,
		"OnDelete":                        at(flat, `{type: OnDelete}`),
		"OnDelete and nested parameters":  at(flat, `{type: OnDelete, rollingUpdate: {partition: 1}}`),
		"OnDelete and flat parameters":    at(flat, `{type: OnDelete, partition: 1}`),
		"flat without type":               at(flat, `{partition: 1, maxSurge: 1}`),
		"nested without type":             at(nested, `{partition: 1, maxSurge: 1}`),
		"flat recreate":                   at(flat, `{type: ReCreate, maxSurge: 1}`),
		"flat in place only":              at(flat, `{type: InPlaceOnly, maxSurge: 0}`),
		"nested in place only":            at(nested, `{podUpdatePolicy: InPlaceOnly, maxSurge: "0%"}`),
		"all kept back":                   at(flat, `{type: InPlaceIfPossible, partition: "100%"}`),
		"none unavailable":                at(flat, `{maxUnavailable: 0, maxSurge: 1}`),
		"surge flat, the rest nested":     at(flat, `{maxSurge: 1, rollingUpdate: {maxUnavailable: 0}}`),
		"partition flat, the rest nested": at(flat, `{type: RollingUpdate, partition: 3, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}`),
		"partition nested, type flat":     at(flat, `{type: InPlaceIfPossible, rollingUpdate: {partition: 3}}`),
		"the same in both places":         at(flat, `{type: ReCreate, partition: 3, maxUnavailable: 1, maxSurge: "1%", paused: true, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 3, maxUnavailable: 1, maxSurge: "1%", paused: true}}`),
		"claims reused, in both words":    at("spec.scaleStrategy", `{enablePVCReuse: true, disablePVCReuse: false}`),
		"deadline beyond minReadySeconds": `spec: {minReadySeconds: 10, progressDeadlineSeconds: 11}`,
		"deadline without end":            `spec: {minReadySeconds: 2147483647, progressDeadlineSeconds: 2147483647}`,
		"scattered by an empty value":     at(flat, `{scatterStrategy: [{key: a, value: ""}, {key: a, value: b}]}`),
	}

	for _, version := range versions() {
		for name, patch := range patches {
			t.Run(version+"/"+name, func(t *testing.T) {
				must(t, c.Create(t.Context(), patchOf(t, validCloneSet, version, patch), client.DryRunAll))
			})
		}
	}
}

// TestCloneSetDefaults checks that nothing is written into a set whose meaning
// differs between the two ways to write it.
func TestCloneSetDefaults(t *testing.T) {
	c := strictClient(t)

	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)

			object := patchOf(t, validCloneSet, version, `spec: {updateStrategy: {rollingUpdate: {}}, scaleStrategy: {}}`)
			written := object.DeepCopy().Object["spec"].(map[string]any)
			must(t, c.Create(t.Context(), object, client.DryRunAll))

			written["replicas"], written["revisionHistoryLimit"] = int64(1), int64(10)
			g.Expect(object.Object["spec"]).To(Equal(written))
		})
	}
}

func TestCloneSetUnknownFields(t *testing.T) {
	c := strictClient(t)

	cases := map[string]refusal{
		"of a set":                     {`spec: {replica: 3}`, []string{`unknown field "spec.replica"`}},
		"of a StatefulSet":             {`spec: {serviceName: a}`, []string{`unknown field "spec.serviceName"`}},
		"of a flat strategy":           {at(flat, `{maxsurge: 1}`), []string{`unknown field "spec.updateStrategy.maxsurge"`}},
		"of a nested strategy":         {at(nested, `{minReadySeconds: 1}`), []string{`unknown field "spec.updateStrategy.rollingUpdate.minReadySeconds"`}},
		"of a strategy for in place":   {at(flat, `{inPlaceUpdateStrategy: {grace: 1}}`), []string{`unknown field "spec.updateStrategy.inPlaceUpdateStrategy.grace"`}},
		"of a template":                {`spec: {template: {spec: {hostnames: a}}}`, []string{`unknown field "spec.template.spec.hostnames"`}},
		"of a strategy for its claims": {`spec: {volumeClaimUpdateStrategy: {recreate: {}}}`, []string{`unknown field "spec.volumeClaimUpdateStrategy.recreate"`}},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				err := c.Create(t.Context(), patchOf(t, validCloneSet, version, test.patch), client.DryRunAll)
				assertRefused(t, err, test.want...)
			})
		}
	}
}
