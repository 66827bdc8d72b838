// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// validRecreateRequest is the smallest request that the API server accepts.
const validRecreateRequest = `
kind: ContainerRecreateRequest
metadata: {name: sample, namespace: default}
spec: {podName: web-0, containers: [{name: main}]}
`

func TestRecreateRequestRefusedOnCreate(t *testing.T) {
	var many []string
	for _, name := range numbered("c", 65) {
		many = append(many, "{name: "+name[:min(len(name), 63)]+"}")
	}
	testRefusedOnCreate(t, validRecreateRequest, map[string]map[string]refusal{
		"pod": {
			"none":  {`spec: {podName: null}`, []string{"spec.podName: Required value"}},
			"empty": {`spec: {podName: ""}`, []string{"spec.podName", "at least 1 chars"}},
			"long":  {`spec: {podName: ` + strings.Repeat("a", 254) + `}`, []string{"spec.podName", "Too long"}},
		},
		"containers": {
			"none":    {`spec: {containers: null}`, []string{"spec.containers: Required value"}},
			"empty":   {`spec: {containers: []}`, []string{"spec.containers", "at least 1 items"}},
			"no name": {`spec: {containers: [{}]}`, []string{"spec.containers[0].name: Required value"}},
			"twice":   {`spec: {containers: [{name: main}, {name: main}]}`, []string{"spec.containers[1]", "Duplicate value"}},
			"many":    {`spec: {containers: [` + strings.Join(many, ",") + `]}`, []string{"spec.containers", "at most 64 items"}},
			"unknown": {`spec: {containers: [{name: main, image: nginx}]}`, []string{`unknown field "spec.containers[0].image"`}},
		},
		"times": {
			"deadline": {`spec: {activeDeadlineSeconds: 2}`, []string{"spec.activeDeadlineSeconds", "greater than or equal to 3"}},
			"ttl":      {`spec: {ttlSecondsAfterFinished: -1}`, []string{"spec.ttlSecondsAfterFinished", "greater than or equal to 0"}},
			"to stop":  {`spec: {strategy: {terminationGracePeriodSeconds: -1}}`, []string{"spec.strategy.terminationGracePeriodSeconds", "greater than or equal to 0"}},
			"unready":  {`spec: {strategy: {unreadyGracePeriodSeconds: -1}}`, []string{"spec.strategy.unreadyGracePeriodSeconds", "greater than or equal to 0"}},
			"started":  {`spec: {strategy: {minStartedSeconds: -1}}`, []string{"spec.strategy.minStartedSeconds", "greater than or equal to 0"}},
		},
		"others": {
			"failure policy": {`spec: {strategy: {failurePolicy: Retry}}`, []string{"spec.strategy.failurePolicy", `"Fail", "Ignore"`}},
			"unknown field":  {`spec: {pod: web}`, []string{`unknown field "spec.pod"`}},
			"no spec":        {`spec: null`, []string{"spec: Required value"}},
		},
	})
}

func TestRecreateRequestDefaultsAndUpdates(t *testing.T) {
	g, c := NewWithT(t), strictClient(t)
	object := patchOf(t, validRecreateRequest, versions()[1], `spec: {containers: [{name: main, preStop: {exec: {command: [stop]}}, ports: [{containerPort: 80}], statusContext: {containerID: a, restartCount: 1}}], activeDeadlineSeconds: 60}`)
	created(t, c, object)

	one := &appsv1beta1.ContainerRecreateRequest{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), one))
	g.Expect(one.Spec.Strategy).To(HaveValue(Equal(appsv1beta1.ContainerRecreateRequestStrategy{FailurePolicy: appsv1beta1.ContainerRecreateRequestFailurePolicyFail})))

	change := func(patch string) error {
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(appsv1beta1.ContainerRecreateRequestKind)
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), current))
		return c.Update(t.Context(), mergePatch(t, current, patch), client.DryRunAll)
	}
	for field, patch := range map[string]string{
		"spec.podName":               `spec: {podName: web-1}`,
		"spec.containers":            `spec: {containers: [{name: main}, {name: side}]}`,
		"spec.strategy":              `spec: {strategy: {orderedRecreate: true}}`,
		"spec.activeDeadlineSeconds": `spec: {activeDeadlineSeconds: null}`,
	} {
		assertRefused(t, change(patch), field, "cannot be changed: make another request")
	}
	assertRefused(t, change(`spec: {activeDeadlineSeconds: 61}`), "spec.activeDeadlineSeconds", "cannot be changed")
	must(t, change(`spec: {ttlSecondsAfterFinished: 5}`))
	must(t, change(`spec: {containers: [{name: main, statusContext: {containerID: b}}]}`))
}
