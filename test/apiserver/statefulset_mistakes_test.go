// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTenMistakesOfForm checks that ten mistakes that the schema finds (a wrong
// type, a missing field, a value out of range) are named at once.
func TestTenMistakesOfForm(t *testing.T) {
	const patch = `
spec:
  replicas: -1
  podManagementPolicy: Serial
  revisionHistoryLimit: many
  ordinals: {start: -3}
  updateStrategy:
    type: Sometimes
    rollingUpdate: {partition: "50%", podUpdatePolicy: InPlace, minReadySeconds: 3600}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}
  template: {spec: {containers: [{name: main}]}}
`

	c := strictClient(t)

	for _, version := range versions() {
		err := c.Create(t.Context(), patched(t, version, patch), client.DryRunAll)
		assertRefused(t, err,
			"spec.replicas", "spec.podManagementPolicy", "spec.revisionHistoryLimit", "spec.ordinals.start",
			"spec.updateStrategy.type", "spec.updateStrategy.rollingUpdate.partition",
			"spec.updateStrategy.rollingUpdate.podUpdatePolicy", "spec.updateStrategy.rollingUpdate.minReadySeconds",
			"spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "spec.template.spec.containers[0].image",
		)
	}
}

// TestTenMistakesOfSense checks that ten mistakes that rules find (values that
// do not go together) are named at once, together with values out of range.
func TestTenMistakesOfSense(t *testing.T) {
	const patch = `
metadata: {name: my.set}
spec:
  replicas: -1
  podManagementPolicy: OrderedReady
  serviceName: my.service
  selector: {matchLabels: {tier: db}}
  reserveOrdinals: ["5-3"]
  lifecycle: {preDelete: {finalizersHandler: [drain]}}
  volumeClaimUpdateStrategy: {type: OnDelete, recreate: {}}
  updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: "0%"}}
  template: {spec: {restartPolicy: Never, activeDeadlineSeconds: 1}}
`

	c := strictClient(t)

	for _, version := range versions() {
		err := c.Create(t.Context(), patched(t, version, patch), client.DryRunAll)
		assertRefused(t, err,
			"spec.replicas", "metadata.name must be a DNS label", "serviceName must be the name of a Service",
			"every label of selector.matchLabels", "from the lower to the higher", "qualified names with a domain",
			"only accepted with type Recreate", "only accepted with type RollingUpdate", `from "1%" to "100%"`,
			"template.spec.restartPolicy must be Always",
			"template.spec.activeDeadlineSeconds must be absent",
		)
	}
}

// TestRulesWaitForTheForm checks that the API server says so when a missing
// field kept it from looking at the rules.
func TestRulesWaitForTheForm(t *testing.T) {
	const patch = `spec: {template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}`

	c := strictClient(t)

	for _, version := range versions() {
		err := c.Create(t.Context(), patched(t, version, patch), client.DryRunAll)
		assertRefused(t, err, "containers[0].image: Required value", "some validation rules were not checked")
	}
}
