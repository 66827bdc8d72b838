// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

// claimTemplateRefusals are those of every kind with claim templates.
func claimTemplateRefusals() map[string]refusal {
	const first = "spec.volumeClaimTemplates[0]"

	return map[string]refusal{
		"without metadata": {
			`spec: {volumeClaimTemplates: [{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".metadata: Required value"},
		},
		"without name": {
			`spec: {volumeClaimTemplates: [{metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".metadata.name: Required value"},
		},
		"name no DNS label": {
			`spec: {volumeClaimTemplates: [{metadata: {name: my.data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".metadata.name", "must be a DNS label", `found "my.data"`},
		},
		"name twice": {
			`spec: {volumeClaimTemplates: [
				{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}},
				{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{"spec.volumeClaimTemplates", "must be unique"},
		},
		"without spec": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}}]}`,
			[]string{first + ".spec: Required value"},
		},
		"without access mode": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".spec.accessModes: Required value"},
		},
		"with no access mode": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".spec.accessModes", "at least 1 items"},
		},
		"access mode unknown": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [RWO], resources: {requests: {storage: 1Gi}}}}]}`,
			[]string{first + ".spec.accessModes[0]", `Unsupported value: "RWO"`, `"ReadWriteOnce"`},
		},
		"without resources": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]}`,
			[]string{first + ".spec.resources: Required value"},
		},
		"without requests": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {}}}]}`,
			[]string{first + ".spec.resources.requests: Required value"},
		},
		"without size": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {cpu: 1}}}}]}`,
			[]string{first + ".spec.resources.requests.storage: Required value"},
		},
		"size no quantity": {
			`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3 GB}}}}]}`,
			[]string{first + ".spec.resources.requests.storage", "should match"},
		},
	}
}

func claimStrategyRefusals() map[string]refusal {
	return map[string]refusal{
		"update type unknown": {
			`spec: {volumeClaimUpdateStrategy: {type: InPlace}}`,
			[]string{"spec.volumeClaimUpdateStrategy.type", `Unsupported value: "InPlace"`, `"OnDelete", "OnPodRollingUpdate", "Recreate"`},
		},
		"recreate with another type": {
			`spec: {volumeClaimUpdateStrategy: {type: OnPodRollingUpdate, recreate: {holdSeconds: 1}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate", "only accepted with type Recreate", "found type OnPodRollingUpdate"},
		},
		"recreate with the default type": {
			`spec: {volumeClaimUpdateStrategy: {recreate: {holdSeconds: 1}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate", "only accepted with type Recreate", "found type OnDelete"},
		},
		"old volume": {
			`spec: {volumeClaimUpdateStrategy: {type: Recreate, recreate: {oldVolume: Keep}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate.oldVolume", `"Retain", "Delete"`},
		},
		"snapshot": {
			`spec: {volumeClaimUpdateStrategy: {type: Recreate, recreate: {snapshot: Keep}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate.snapshot", `"Retain", "Delete"`},
		},
		"without snapshot": {
			`spec: {volumeClaimUpdateStrategy: {type: Recreate, recreate: {withoutSnapshot: Ignore}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate.withoutSnapshot", `"Refuse", "Empty"`},
		},
		"negative hold": {
			`spec: {volumeClaimUpdateStrategy: {type: Recreate, recreate: {holdSeconds: -1}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate.holdSeconds", "greater than or equal to 0"},
		},
		"timeout 0": {
			`spec: {volumeClaimUpdateStrategy: {type: Recreate, recreate: {timeoutSeconds: 0}}}`,
			[]string{"spec.volumeClaimUpdateStrategy.recreate.timeoutSeconds", "greater than or equal to 1"},
		},
		"whenDeleted": {
			`spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Keep}}`,
			[]string{"spec.persistentVolumeClaimRetentionPolicy.whenDeleted", `"Retain", "Delete"`},
		},
		"whenScaled": {
			`spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Keep}}`,
			[]string{"spec.persistentVolumeClaimRetentionPolicy.whenScaled", `"Retain", "Delete"`},
		},
	}
}
