// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

const (
	manifest = `
metadata: {name: web, namespace: default, labels: {insitu.dev/update-policy: InPlaceIfPossible}, annotations: {insitu.dev/paused: "true"}}
spec: {template: {spec: {containers: [{name: nginx, image: "nginx:latest"}]}}}`
	readyManifest = `
metadata: {name: web, namespace: default, labels: {insitu.dev/update-policy: InPlaceIfPossible}, annotations: {insitu.dev/paused: "true"}}
spec: {minReadySeconds: 5, template: {spec: {containers: [{name: nginx, image: "nginx:latest"}]}}}`
	strategyManifest = `
metadata: {name: web, namespace: default, labels: {insitu.dev/update-policy: InPlaceIfPossible}, annotations: {insitu.dev/paused: "true"}}
spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, template: {spec: {containers: [{name: nginx, image: "nginx:latest"}]}}}`
)

// Argo CD compares Git with the cluster as a client-side apply does, unless it is told
// otherwise: what only the cluster has is no difference. So a hold is one only where
// the manifest says what the hold changes.
func TestWhatOfAHoldIsOutOfSync(t *testing.T) {
	for name, test := range map[string]struct {
		file, manifest string
		kind           any
		differs        string // the field; empty: in sync
	}{
		"Deployment":                       {"deployment-held", manifest, appsv1.Deployment{}, ""},
		"Deployment with minReadySeconds":  {"deployment-held", readyManifest, appsv1.Deployment{}, "minReadySeconds"},
		"StatefulSet":                      {"statefulset-held", manifest, appsv1.StatefulSet{}, ""},
		"StatefulSet with updateStrategy":  {"statefulset-held", strategyManifest, appsv1.StatefulSet{}, "updateStrategy"},
		"DaemonSet":                        {"daemonset-held", manifest, appsv1.DaemonSet{}, ""},
		"DaemonSet with an updateStrategy": {"daemonset-held", strategyManifest, appsv1.DaemonSet{}, "updateStrategy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := &unstructured.Unstructured{}
			read(t, filepath.Join("testdata", test.file+".yaml"), &live.Object)
			live.SetName("web")
			current, err := live.MarshalJSON()
			g.Expect(err).NotTo(HaveOccurred())
			desired, err := yaml.YAMLToJSON([]byte(test.manifest))
			g.Expect(err).NotTo(HaveOccurred())
			schema, err := strategicpatch.NewPatchMetaFromStruct(test.kind)
			g.Expect(err).NotTo(HaveOccurred())
			patch, err := strategicpatch.CreateThreeWayMergePatch(desired, desired, current, schema, true)
			g.Expect(err).NotTo(HaveOccurred())
			difference := map[string]map[string]any{}
			g.Expect(json.Unmarshal(patch, &difference)).To(Succeed())
			if test.differs == "" {
				g.Expect(difference).To(BeEmpty(), string(patch))
				return
			}
			g.Expect(difference).To(HaveLen(1), string(patch))
			g.Expect(difference["spec"]).To(And(HaveLen(1), HaveKey(test.differs)))
		})
	}
}
