// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// recorded is where the objects are that the suites of the controllers had at their
// API server, beside the script, laid out as Argo CD lays out its own.
var recorded = filepath.Join("..", "..", "config", "argocd", "resource_customizations", "apps.kruise.io")

// fluxSays is what Flux says of the objects, by the names of their files.
var fluxSays = map[string]status.Status{
	"fresh":             InProgress,
	"not-observed":      InProgress,
	"rolling":           InProgress,
	"paused":            InProgress, // as of a paused Deployment: what is in Git does not run
	"partition-reached": Current,    // all that was asked for
	"on-delete":         Current,
	"no-pods":           Current,
	"settled":           Current,
	"stuck":             Failed,
	"being-deleted":     Terminating,
}

// healthTests is a health_test.yaml of Argo CD.
type healthTests struct {
	Tests []struct {
		HealthStatus Health `json:"healthStatus"`
		InputPath    string `json:"inputPath"`
	} `json:"tests"`
}

func TestRecordedObjects(t *testing.T) {
	for _, kind := range []string{"StatefulSet", "CloneSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			folder := filepath.Join(recorded, kind)
			script, err := os.ReadFile(filepath.Join(folder, "health.lua"))
			g.Expect(err).NotTo(HaveOccurred())
			tests := healthTests{}
			read(t, filepath.Join(folder, "health_test.yaml"), &tests)
			g.Expect(tests.Tests).To(HaveLen(len(fluxSays)))
			for _, test := range tests.Tests {
				name := strings.TrimSuffix(filepath.Base(test.InputPath), ".yaml")
				t.Run(name, func(t *testing.T) {
					g := NewWithT(t)
					obj := &unstructured.Unstructured{}
					read(t, filepath.Join(folder, test.InputPath), &obj.Object)
					verdicts, err := Judge(t.Context(), string(script), obj)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(Health{verdicts.ArgoCD, verdicts.Message}).To(Equal(test.HealthStatus))
					g.Expect(verdicts.Flux).To(Equal(fluxSays[name]))
					isHealthy, isCurrent := verdicts.ArgoCD == Healthy, verdicts.Flux == Current
					g.Expect(isHealthy).To(Equal(isCurrent), "Flux and Argo CD agree on what is done")
					if verdicts.Flux != Terminating {
						g.Expect(verdicts.Waited).To(Equal(verdicts.Flux == Current), "kubectl wait --for=condition=Ready")
					}
					if verdicts.Flux != Current {
						g.Expect(verdicts.Shipped).NotTo(Equal(Healthy), "without our script")
					}
				})
			}
		})
	}
}

// read reads a YAML file, numbers as JSON has them at the API server.
func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	if obj, ok := into.(*map[string]any); err == nil && ok {
		u := unstructured.Unstructured{}
		err = u.UnmarshalJSON(data)
		*obj = u.Object
	} else if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What is blocked beside the pods, Argo CD sees with our script only: all counts are as
// of a set that is done.
func TestClaimsThatAreBlocked(t *testing.T) {
	g := NewWithT(t)
	obj := &unstructured.Unstructured{}
	read(t, filepath.Join(recorded, "StatefulSet", "testdata", "settled.yaml"), &obj.Object)
	g.Expect(unstructured.SetNestedField(obj.Object, int64(0), "spec", "updateStrategy", "rollingUpdate", "partition")).To(Succeed())
	g.Expect(unstructured.SetNestedSlice(obj.Object, []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "ClaimsBlocked", "message": "3 claims do not follow their templates"},
		map[string]any{"type": "Stalled", "status": "True", "reason": "ClaimRefused", "message": "pod sample-2: quota"},
	}, "status", "conditions")).To(Succeed())
	script, err := os.ReadFile(filepath.Join(recorded, "..", "..", "health.lua"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Judge(t.Context(), string(script), obj)).To(Equal(Verdicts{
		Flux: Failed, ArgoCD: Degraded, Shipped: Healthy, Message: "ClaimRefused: pod sample-2: quota",
	}))
}
