// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/config/argocd"
	"github.com/insitu-dev/insitu/config/flux"
)

// workload reads a workload of Kubernetes that has been observed.
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
	if err := unstructured.SetNestedField(obj.Object, int64(2), "status", "observedGeneration"); err != nil {
		t.Fatal(err)
	}
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
	rollingDeployment  = `{spec: {replicas: 3, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {replicas: 4, updatedReplicas: 1, readyReplicas: 4, availableReplicas: 3, conditions: [{type: Available, status: "True"}]}}`
	oneDeployment      = `{spec: {replicas: 1, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`
	promotedDeployment = `{spec: {replicas: 3, minReadySeconds: 2147483646, progressDeadlineSeconds: 2147483647}, status: {replicas: 4, updatedReplicas: 3, readyReplicas: 4, conditions: [{type: Available, status: "False"}]}}`
	pausedDeployment   = `{spec: {replicas: 3, paused: true, progressDeadlineSeconds: 600}, status: {replicas: 3, readyReplicas: 3, availableReplicas: 3, conditions: [{type: Available, status: "True"}, {type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`
	rollingStatefulSet = `{spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`
	rollingDaemonSet   = `{spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3}}`
)

// What docs/gitops.md says of held workloads: a StatefulSet is the one that Flux takes
// for done, a StatefulSet and a DaemonSet those that Argo CD does.
func TestHeldWorkloadsWithoutOurHelp(t *testing.T) {
	for name, test := range map[string]struct {
		kind, body string
		flux       status.Status
		argo       HealthStatus
	}{
		"Deployment":                     {"Deployment", rollingDeployment, InProgress, Progressing},
		"Deployment of one pod":          {"Deployment", oneDeployment, InProgress, Progressing},
		"Deployment, before its release": {"Deployment", promotedDeployment, InProgress, Progressing},
		"Deployment, no pod more":        {"Deployment", pausedDeployment, InProgress, Suspended},
		"StatefulSet":                    {"StatefulSet", rollingStatefulSet, Current, Healthy},
		"DaemonSet":                      {"DaemonSet", rollingDaemonSet, InProgress, Healthy},
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

func fluxExprs(t *testing.T) HealthCheckExprs {
	t.Helper()
	snippet := struct {
		Exprs []HealthCheckExprs `json:"healthCheckExprs"`
	}{}
	if err := yaml.UnmarshalStrict([]byte(flux.StatefulSet), &snippet); err != nil {
		t.Fatal(err)
	}
	return snippet.Exprs[0]
}

func TestFluxWaitsForAHeldStatefulSet(t *testing.T) {
	exprs := fluxExprs(t)
	for state, want := range map[native.State]status.Status{
		"":                              InProgress,
		native.Updating:                 InProgress,
		native.Paused:                   InProgress,
		native.Stalled:                  Failed,
		native.ProgressDeadlineExceeded: Failed,
		native.InvalidOptions:           Failed,
	} {
		t.Run(string(state), func(t *testing.T) {
			obj := workload(t, "StatefulSet", rollingStatefulSet)
			hold(obj, state)
			NewWithT(t).Expect(exprs.Status(t.Context(), obj)).To(Equal(want))
		})
	}
}

// Where there is no hold, nothing changes.
func TestFluxSaysOfOtherStatefulSetsWhatItSays(t *testing.T) {
	g := NewWithT(t)
	exprs := fluxExprs(t)
	seen := map[status.Status]int{}
	for range 500 {
		obj := randomStatefulSet(t)
		want, err := Kstatus(obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(exprs.Status(t.Context(), obj)).To(Equal(want), "%v", obj.Object)
		seen[want]++
	}
	g.Expect(seen).To(And(HaveKey(Current), HaveKey(InProgress)))
}

func randomStatefulSet(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	n := func() int { return rand.IntN(3) + 1 }
	strategy := []string{
		`{type: OnDelete}`, `{type: RollingUpdate}`, `{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`,
		`{type: RollingUpdate, rollingUpdate: {partition: 0}}`, `{type: RollingUpdate, rollingUpdate: {partition: 2}}`,
	}[rand.IntN(5)]
	obj := workload(t, "StatefulSet", fmt.Sprintf(
		`{spec: {replicas: %d, updateStrategy: %s}, status: {replicas: %d, readyReplicas: %d, currentReplicas: %d, updatedReplicas: %d, availableReplicas: %d, currentRevision: r%d, updateRevision: r1}}`,
		n(), strategy, n(), n(), n(), n(), n(), rand.IntN(2)))
	obj.SetGeneration(2 + int64(rand.IntN(8)/7))
	for _, count := range []string{"readyReplicas", "currentReplicas", "updatedReplicas"} {
		if rand.IntN(6) == 0 {
			unstructured.RemoveNestedField(obj.Object, "status", count) // the API server leaves out a zero
		}
	}
	return obj
}

func randomDaemonSet(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	strategy := []string{`{type: OnDelete}`, `{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`}[rand.IntN(2)]
	obj := workload(t, "DaemonSet", fmt.Sprintf(
		`{spec: {updateStrategy: %s}, status: {desiredNumberScheduled: %d, currentNumberScheduled: 2, updatedNumberScheduled: %d, numberAvailable: %d}}`,
		strategy, rand.IntN(3), rand.IntN(3), rand.IntN(3)))
	obj.SetGeneration(2 + int64(rand.IntN(8)/7))
	return obj
}

func TestArgoCDWaitsForHeldWorkloads(t *testing.T) {
	for state, want := range map[native.State]Health{
		"":                              {Progressing, "Insitu updates its pods in place"},
		native.Updating:                 {Progressing, "Insitu: 1 of 3 pods are 'updated'"},
		native.Paused:                   {Suspended, "Insitu: 1 of 3 pods are 'updated'"},
		native.PartitionReached:         {Healthy, "Insitu: 1 of 3 pods are 'updated'"},
		native.Stalled:                  {Degraded, "Insitu: 1 of 3 pods are 'updated'"},
		native.ProgressDeadlineExceeded: {Degraded, "Insitu: 1 of 3 pods are 'updated'"},
		native.InvalidOptions:           {Degraded, "Insitu: 1 of 3 pods are 'updated'"},
	} {
		for kind, body := range map[string]string{"StatefulSet": rollingStatefulSet, "DaemonSet": rollingDaemonSet} {
			t.Run(kind+" "+string(state), func(t *testing.T) {
				g := NewWithT(t)
				obj := workload(t, kind, body)
				hold(obj, state)
				g.Expect(RunHealth(t.Context(), argocd.Held, true, obj)).To(Equal(want))
				without, err := RunHealth(t.Context(), argocd.Held, false, obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(without.Status).To(Equal(Progressing), "without the library of strings")
			})
		}
	}
}

// Where there is no hold, nothing changes but the messages.
func TestArgoCDSaysOfOtherWorkloadsWhatItSays(t *testing.T) {
	for kind, random := range map[string]func(*testing.T) *unstructured.Unstructured{"StatefulSet": randomStatefulSet, "DaemonSet": randomDaemonSet} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			seen := map[HealthStatus]int{}
			for range 500 {
				obj := random(t)
				health, err := RunHealth(t.Context(), argocd.Held, true, obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(health.Status).To(Equal(BuiltinHealth(obj)), "%v", obj.Object)
				seen[health.Status]++
			}
			g.Expect(seen).To(And(HaveKey(Healthy), HaveKey(Progressing)))
		})
	}
}
