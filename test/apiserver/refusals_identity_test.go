// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

func identityRefusals() map[string]refusal {
	return map[string]refusal{
		"name with a dot": {
			`metadata: {name: data.base}`,
			[]string{"metadata.name must be a DNS label", `found "data.base"`},
		},
		"service name no DNS label": {
			`spec: {serviceName: my.service}`,
			[]string{"spec.serviceName", "must be the name of a Service", `found "my.service"`},
		},
		"negative start": {
			`spec: {ordinals: {start: -1}}`, []string{"spec.ordinals.start", "greater than or equal to 0"},
		},
		"reserved ordinal negative": {
			`spec: {reserveOrdinals: [1, -2]}`,
			[]string{"spec.reserveOrdinals[1]", "ordinals from 0", "found -2"},
		},
		"reserved range backwards": {
			`spec: {reserveOrdinals: ["5-3"]}`,
			[]string{"spec.reserveOrdinals[0]", "from the lower to the higher", `found "5-3"`},
		},
		"reserved range of words": {
			`spec: {reserveOrdinals: ["one-two"]}`,
			[]string{"spec.reserveOrdinals[0]", `found "one-two"`},
		},
	}
}

// commonRefusals are those of every kind with replicas and a selector.
func commonRefusals() map[string]refusal {
	return map[string]refusal{
		"name too long": {
			`metadata: {name: n1234567890123456789012345678901234567890123456789012}`,
			[]string{"metadata.name must be at most 52 characters", `found "n12345678901234`},
		},
		"no spec":           {`spec: null`, []string{"spec: Required value"}},
		"negative replicas": {`spec: {replicas: -1}`, []string{"spec.replicas", "greater than or equal to 0"}},
		"replicas no number": {
			`spec: {replicas: many}`, []string{"spec.replicas", "must be of type integer"},
		},
		"no selector": {`spec: {selector: null}`, []string{"spec.selector: Required value"}},
		"empty selector": {
			`spec: {selector: {matchLabels: null}}`,
			[]string{"spec.selector", "selector must not be empty"},
		},
		"selector with empty matchLabels": {
			`spec: {selector: {matchLabels: {app: null}}}`,
			[]string{"spec.selector", "selector must not be empty"},
		},
		"selector matches no label": {
			`spec: {selector: {matchLabels: {tier: db}}}`,
			[]string{"spec.template.metadata.labels", "every label of selector.matchLabels"},
		},
		"selector matches another value": {
			`spec: {selector: {matchLabels: {app: other}}}`,
			[]string{"spec.template.metadata.labels", "every label of selector.matchLabels"},
		},
		"selector and no labels": {
			`spec: {template: {metadata: {labels: null}}}`,
			[]string{"spec.template.metadata.labels", "every label of selector.matchLabels"},
		},
		"selector value not a label value": {
			`spec: {selector: {matchLabels: {app: "a b"}}, template: {metadata: {labels: {app: "a b"}}}}`,
			[]string{"spec.selector.matchLabels[app]", "must begin and end with a letter or digit", `found "a b"`},
		},
		"selector operator unknown": {
			`spec: {selector: {matchExpressions: [{key: app, operator: Equals, values: [sample]}]}}`,
			[]string{"spec.selector.matchExpressions[0].operator", `Unsupported value: "Equals"`, `"Exists"`},
		},
		"selector expression without key": {
			`spec: {selector: {matchExpressions: [{operator: Exists}]}}`,
			[]string{"spec.selector.matchExpressions[0].key: Required value"},
		},
		"selector In without values": {
			`spec: {selector: {matchExpressions: [{key: app, operator: In}]}}`,
			[]string{"spec.selector.matchExpressions[0]", "need values", "found In"},
		},
		"selector Exists with values": {
			`spec: {selector: {matchExpressions: [{key: app, operator: Exists, values: [a]}]}}`,
			[]string{"spec.selector.matchExpressions[0]", "accept none", "found Exists"},
		},
		"selector In another value": {
			`spec: {selector: {matchExpressions: [{key: app, operator: In, values: [a, b]}]}}`,
			[]string{"spec.template.metadata.labels", "every entry of selector.matchExpressions"},
		},
		"selector NotIn this value": {
			`spec: {selector: {matchExpressions: [{key: app, operator: NotIn, values: [sample]}]}}`,
			[]string{"spec.template.metadata.labels", "every entry of selector.matchExpressions"},
		},
		"selector Exists but does not": {
			`spec: {selector: {matchExpressions: [{key: tier, operator: Exists}]}}`,
			[]string{"spec.template.metadata.labels", "every entry of selector.matchExpressions"},
		},
		"selector DoesNotExist but does": {
			`spec: {selector: {matchExpressions: [{key: app, operator: DoesNotExist}]}}`,
			[]string{"spec.template.metadata.labels", "every entry of selector.matchExpressions"},
		},
		"negative history": {
			`spec: {revisionHistoryLimit: -1}`,
			[]string{"spec.revisionHistoryLimit", "greater than or equal to 0"},
		},
	}
}
