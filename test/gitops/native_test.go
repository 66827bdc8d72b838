// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
)

// workload reads a workload of Kubernetes.
func workload(t *testing.T, kind, body string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(body))
	obj := &unstructured.Unstructured{}
	if err == nil {
		data = append([]byte(`{"apiVersion":"apps/v1","kind":"`+kind+`",`), data[1:]...)
		err = obj.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	obj.SetName("web")
	obj.SetGeneration(2)
	return obj
}

// hold puts the label of the hold on an object, and a state if there is one.
func hold(obj *unstructured.Unstructured, state native.State) {
	obj.SetLabels(map[string]string{native.HeldLabel: native.Held})
	if state != "" {
		obj.SetAnnotations(map[string]string{
			native.StatusAnnotation: fmt.Sprintf(`{"revision":"a","state":%q,"message":"1 of 3 pods are \"updated\"","replicas":3}`, state),
		})
	}
}

const (
	rollingDeployment  = `{spec: {replicas: 3, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 1, readyReplicas: 4, availableReplicas: 3, conditions: [{type: Available, status: "True"}]}}`
	oneDeployment      = `{spec: {replicas: 1, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`
	promotedDeployment = `{spec: {replicas: 3, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {observedGeneration: 2, replicas: 4, updatedReplicas: 3, readyReplicas: 4, conditions: [{type: Available, status: "False"}]}}`
	pausedDeployment   = `{spec: {replicas: 3, paused: true, progressDeadlineSeconds: 600}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, conditions: [{type: Available, status: "True"}, {type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`
	rollingStatefulSet = `{spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`
	rollingDaemonSet   = `{spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3}}`
)

// What docs/gitops.md says of held workloads: none is taken for done.
func TestHeldWorkloads(t *testing.T) {
	for name, test := range map[string]struct {
		kind, body string
		flux       status.Status
		argo       HealthStatus
	}{
		"Deployment":                     {"Deployment", rollingDeployment, InProgress, Progressing},
		"Deployment of one pod":          {"Deployment", oneDeployment, InProgress, Progressing},
		"Deployment, before its release": {"Deployment", promotedDeployment, InProgress, Progressing},
		"Deployment, no pod more":        {"Deployment", pausedDeployment, InProgress, Suspended},
		"StatefulSet":                    {"StatefulSet", rollingStatefulSet, InProgress, Progressing},
		"DaemonSet":                      {"DaemonSet", rollingDaemonSet, InProgress, Progressing},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obj := workload(t, test.kind, test.body)
			hold(obj, native.Updating)
			g.Expect(Kstatus(obj)).To(Equal(test.flux))
			g.Expect(BuiltinHealth(obj)).To(Equal(test.argo))
		})
	}
}
