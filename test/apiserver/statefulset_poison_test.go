// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestWhatIsStoredCanBeRead tries values at the edge of what the Go types hold.
// Each must be refused, or be readable: one stored object that cannot be read
// stops every informer of the kind, and with it the operator for all others.
func TestWhatIsStoredCanBeRead(t *testing.T) {
	c := strictClient(t)

	container := func(fields string) string {
		return `spec: {template: {spec: {containers: [{name: main, image: a, ` + fields + `}]}}}`
	}
	memory := func(quantity string) string { return container(`resources: {limits: {memory: ` + quantity + `}}`) }

	patches := map[string]string{
		"replicas beyond int32":            `spec: {replicas: 5000000000}`,
		"replicas with exponent":           `spec: {replicas: 1e3}`,
		"replicas with fraction 0":         `spec: {replicas: 3.0}`,
		"replicas beyond int64":            `spec: {replicas: 1e30}`,
		"partition beyond int32":           `spec: {updateStrategy: {rollingUpdate: {partition: 5000000000}}}`,
		"maxUnavailable beyond int32":      `spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 5000000000}}}`,
		"scale maxUnavailable of 2^31":     `spec: {scaleStrategy: {maxUnavailable: 2147483648}}`,
		"reserved beyond int32":            `spec: {reserveOrdinals: [5000000000]}`,
		"reserved range beyond int32":      `spec: {reserveOrdinals: ["0-5000000000"]}`,
		"grace period beyond int64":        `spec: {template: {spec: {terminationGracePeriodSeconds: 1e30}}}`,
		"grace period of 2^63":             `spec: {template: {spec: {terminationGracePeriodSeconds: 9223372036854775808}}}`,
		"port beyond int32":                container(`ports: [{containerPort: 5000000000}]`),
		"probe port beyond int32":          container(`livenessProbe: {httpGet: {port: 5000000000}}`),
		"probe port far below int32":       container(`livenessProbe: {httpGet: {port: -5000000000}}`),
		"quantity empty":                   memory(`""`),
		"quantity with space":              memory(`" 1"`),
		"quantity with point alone":        memory(`"."`),
		"quantity with sign alone":         memory(`"+"`),
		"quantity with trailing point":     memory(`"1."`),
		"quantity with fraction exponent":  memory(`"1e1.5"`),
		"quantity with large exponent":     memory(`"1e400"`),
		"quantity with immense exponent":   memory(`"1e99999999999"`),
		"quantity with exponent":           memory(`1e300`),
		"quantity tiny":                    memory(`1e-300`),
		"quantity negative":                memory(`-0.5`),
		"quantity null":                    memory(`null`),
		"quantity with very many digits":   memory(`"` + digits(500) + `"`),
		"creation timestamp empty":         `spec: {template: {metadata: {creationTimestamp: ""}}}`,
		"creation timestamp without zone":  `spec: {template: {metadata: {creationTimestamp: "2026-01-02T03:04:05"}}}`,
		"creation timestamp with fraction": `spec: {template: {metadata: {creationTimestamp: "2026-01-02T03:04:05.000Z"}}}`,
		"creation timestamp a day":         `spec: {template: {metadata: {creationTimestamp: "2026-01-02"}}}`,
		"creation timestamp impossible":    `spec: {template: {metadata: {creationTimestamp: "2026-13-02T03:04:05Z"}}}`,
		"creation timestamp leap second":   `spec: {template: {metadata: {creationTimestamp: "2026-06-30T23:59:60Z"}}}`,
		"creation timestamp":               `spec: {template: {metadata: {creationTimestamp: "2026-01-02T03:04:05Z"}}}`,
		"claim condition without zone": `spec: {volumeClaimTemplates: [{metadata: {name: data},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}},
			status: {conditions: [{type: a, status: b, lastProbeTime: "2026-01-02T03:04:05"}]}}]}`,
	}

	read := 0

	for name, patch := range patches {
		t.Run(name, func(t *testing.T) {
			object := patched(t, appsv1beta1.GroupVersion.String(), patch)
			if err := c.Create(t.Context(), object); err != nil {
				assertRefused(t, err)

				return
			}

			defer func() { must(t, c.Delete(t.Context(), object)) }()

			read++

			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), &appsv1beta1.StatefulSet{}); err != nil {
				t.Errorf("the object was stored and cannot be read: %v", err)
			}
		})
	}

	if read == 0 || read == len(patches) {
		t.Errorf("%d of %d values were accepted, want some", read, len(patches))
	}
}

func digits(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = '9'
	}

	return string(text)
}
