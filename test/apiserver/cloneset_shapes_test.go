// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
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

			for document := range strings.SplitSeq(string(raw), "\n---\n") {
				object := parse(t, document)
				object.SetNamespace("default")
				must(t, c.Create(t.Context(), object, client.DryRunAll))
			}
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

// TestCloneSetDefaults looks at what clients read without asking. Those made for v1alpha1
// read it beside type, those for v1beta1 in rollingUpdate.
func TestCloneSetDefaults(t *testing.T) {
	c := strictClient(t)
	// with returns the update strategy that says no more than the defaults, and this.
	with := func(beside, inside map[string]any) map[string]any {
		strategy := map[string]any{"type": "RollingUpdate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)}
		nested := maps.Clone(strategy)
		delete(nested, "type")
		maps.Copy(strategy, beside)
		maps.Copy(nested, inside)
		strategy["rollingUpdate"] = nested

		return strategy
	}
	for patch, want := range map[string]map[string]any{
		"{}":                                with(nil, nil),
		at(flat, `{}`):                      with(nil, nil),
		at(flat, `{type: OnDelete}`):        with(map[string]any{"type": "OnDelete"}, nil),
		at(nested, `{partition: 3}`):        with(nil, map[string]any{"partition": int64(3)}),
		at(nested, `{paused: true}`):        with(nil, map[string]any{"paused": true}),
		at(flat, `{partition: 3}`):          with(map[string]any{"partition": int64(3)}, nil),
		at(flat, `{type: InPlaceOnly}`):     with(map[string]any{"type": "InPlaceOnly"}, nil),
		at(flat, `{maxUnavailable: "10%"}`): with(map[string]any{"maxUnavailable": "10%"}, nil),
	} {
		for _, version := range versions() {
			t.Run(version+"/"+patch, func(t *testing.T) {
				g := NewWithT(t)

				object := patchOf(t, validCloneSet, version, patch)
				must(t, c.Create(t.Context(), object, client.DryRunAll))

				spec := object.Object["spec"].(map[string]any)
				g.Expect(spec).To(And(HaveKeyWithValue("replicas", int64(1)), HaveKeyWithValue("revisionHistoryLimit", int64(10))))
				g.Expect(spec["updateStrategy"]).To(Equal(want))
				g.Expect(spec).NotTo(HaveKey("scaleStrategy"))
			})
		}
	}
}

// TestCloneSetDefaultsAreNoWord: the place that the API server fills in contradicts no
// other, and what is no longer in a manifest is the default again.
func TestCloneSetDefaultsAreNoWord(t *testing.T) {
	c := strictClient(t)
	const inPlace = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	for name, test := range map[string]struct {
		applied        []string
		policy         appsv1beta1.PodUpdateStrategyType
		partition      int32
		maxUnavailable int32
		paused         bool
	}{
		"flat": {
			applied: []string{`{type: InPlaceIfPossible, partition: 3, maxUnavailable: 2, paused: true}`},
			policy:  inPlace, partition: 3, maxUnavailable: 2, paused: true,
		},
		"nested": {
			applied: []string{`{rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3, maxUnavailable: 2, paused: true}}`},
			policy:  inPlace, partition: 3, maxUnavailable: 2, paused: true,
		},
		"flat, and then nested": {
			applied: []string{
				`{type: InPlaceIfPossible, partition: 3, maxUnavailable: 2, paused: true}`,
				`{rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3, maxUnavailable: 2, paused: true}}`,
			},
			policy: inPlace, partition: 3, maxUnavailable: 2, paused: true,
		},
		"nested, and then flat": {
			applied: []string{
				`{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3, maxUnavailable: 2, paused: true}}`,
				`{type: InPlaceIfPossible, partition: 1}`,
			},
			policy: inPlace, partition: 1, maxUnavailable: 2,
		},
		"removed where it was nested": {
			applied: []string{`{rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3, paused: true}}`, `{rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}`},
			policy:  inPlace, maxUnavailable: 2,
		},
		"removed where it was flat": {
			applied: []string{`{type: InPlaceIfPossible, partition: 3, paused: true}`, `{type: InPlaceIfPossible}`},
			policy:  inPlace, maxUnavailable: 2,
		},
		"removed altogether": {
			applied: []string{`{type: InPlaceIfPossible, partition: 3, maxUnavailable: 1}`, `{}`},
			policy:  appsv1beta1.RecreatePodUpdateStrategyType, maxUnavailable: 2,
		},
	} {
		for _, version := range versions() {
			t.Run(version+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				object := patchOf(t, validCloneSet, version, `spec: {replicas: 10}`)
				for _, strategy := range test.applied {
					applied := patchOf(t, validCloneSet, version, `spec: {replicas: 10, updateStrategy: `+strategy+`}`)
					must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("pipeline")))
				}
				t.Cleanup(func() { must(t, c.Delete(context.WithoutCancel(t.Context()), object)) })

				set := &appsv1beta1.CloneSet{}
				must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), set))
				g.Expect(set.GetPodUpdatePolicy()).To(Equal(test.policy))
				g.Expect(set.GetPartition()).To(Equal(test.partition))
				g.Expect(set.GetMaxUnavailable()).To(Equal(test.maxUnavailable))
				g.Expect(set.IsPaused()).To(Equal(test.paused))
				must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
				must(t, c.Update(t.Context(), object))
				g.Expect(object.GetGeneration()).To(Equal(set.Generation), "to write what was read changes nothing")
			})
		}
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
