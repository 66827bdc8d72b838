// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/config/templates"
)

const (
	mounting = `[{name: main, image: a, volumeMounts: [{name: cache, mountPath: /a}, {name: data, mountPath: /b}]}]`
	cache    = `volumes: [{name: cache, emptyDir: {}}]`
	data     = `volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`
	// misspelled is a mount of what is nowhere.
	misspelled = `spec: {template: {spec: {` + cache + `, containers: [{name: main, image: a, volumeMounts: [{name: cahce, mountPath: /a}]}]}}}`
)

var (
	claimKinds = []string{valid, validCloneSet}
	allKinds   = []string{valid, validCloneSet, validDaemonSet}
)

// mounts are templates of kinds, and how they are refused; empty if they are not.
var mounts = map[string]struct {
	kinds          []string
	patch, refused string
}{
	"of the template and of a claim": {claimKinds, `spec: {template: {spec: {` + cache + `, containers: ` + mounting + `}}, ` + data + `}`, ""},
	"of the template": {
		[]string{validDaemonSet},
		`spec: {template: {spec: {volumes: [{name: cache, emptyDir: {}}, {name: data, hostPath: {path: /data}}], containers: ` + mounting + `}}}`, "",
	},
	"of nothing": {
		claimKinds, `spec: {template: {spec: {containers: ` + mounting + `}}}`,
		"container main mounts cache, data: accepted are the names of spec.template.spec.volumes and spec.volumeClaimTemplates, and there are none",
	},
	"of nothing, without claims": {
		[]string{validDaemonSet}, `spec: {template: {spec: {containers: ` + mounting + `}}}`,
		"container main mounts cache, data: accepted are the names of spec.template.spec.volumes, and there are none",
	},
	"misspelled": {
		claimKinds, misspelled,
		"container main mounts cahce: accepted are the names of spec.template.spec.volumes and spec.volumeClaimTemplates, which are cache",
	},
	"misspelled, without claims": {
		[]string{validDaemonSet}, misspelled, "container main mounts cahce: accepted are the names of spec.template.spec.volumes, which are cache",
	},
	"of an init container": {
		allKinds, `spec: {template: {spec: {` + cache + `, initContainers: [{name: setup, image: a, volumeMounts: [{name: data, mountPath: /b}]}]}}}`,
		"container setup mounts data: ",
	},
	"a device": {
		allKinds, `spec: {template: {spec: {initContainers: [{name: setup, image: a, volumeDevices: [{name: disk, devicePath: /dev/b}]}]}}}`,
		"container setup mounts disk: ",
	},
}

// TestMountsWithoutVolumes: a pod from such a template would be refused, so the template is, as by
// the kinds of Kubernetes.
func TestMountsWithoutVolumes(t *testing.T) {
	c := strictClient(t)
	stored := map[string]*unstructured.Unstructured{} // before there was the policy
	for _, kind := range allKinds {
		for _, version := range versions() {
			object := patchOf(t, kind, version, misspelled)
			object.SetName("stored-" + version[len(version)-3:])
			created(t, c, object)
			stored[kind+version] = object
		}
	}
	installTemplates(t, c)
	for name, of := range mounts {
		for _, kind := range of.kinds {
			for _, version := range versions() {
				t.Run(name+" in "+strings.Fields(kind)[1]+" "+version, func(t *testing.T) {
					g := NewWithT(t)
					err := c.Create(t.Context(), patchOf(t, kind, version, of.patch), client.DryRunAll)
					if of.refused == "" {
						g.Expect(err).NotTo(HaveOccurred())
					} else {
						g.Expect(err).To(MatchError(ContainSubstring(of.refused)))
					}
				})
			}
		}
	}
	for key, object := range stored {
		t.Run("stored "+strings.Fields(key)[1]+" "+object.GetAPIVersion(), func(t *testing.T) { testStored(t, c, object) })
	}
}

// testStored writes to a workload whose template was there before the policy.
func testStored(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()

	g := NewWithT(t)
	write := func(patch string) error {
		body, err := yaml.YAMLToJSON([]byte(patch))
		must(t, err)

		return c.Patch(t.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json", body), client.DryRunAll)
	}
	g.Expect(write(`{metadata: {labels: {a: b}}, spec: {revisionHistoryLimit: 3}}`)).To(Succeed(), "its template stays as it is")
	g.Expect(write(`{metadata: {finalizers: []}}`)).To(Succeed())
	g.Expect(write(`{spec: {template: {metadata: {annotations: {a: b}}}}}`)).To(MatchError(ContainSubstring("container main mounts cahce: ")))
	g.Expect(write(`{spec: {template: {spec: {volumes: [{name: cahce, emptyDir: {}}]}}}}`)).To(Succeed())
}

// installTemplates installs the policy until the test ends, and returns when it acts.
func installTemplates(t *testing.T, c client.Client) {
	t.Helper()

	try := func() error {
		return c.Create(context.WithoutCancel(t.Context()), patchOf(t, valid, versions()[0], misspelled), client.DryRunAll)
	}
	t.Cleanup(func() { NewWithT(t).Eventually(try, time.Minute, time.Second/2).Should(Succeed()) })
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(templates.Manifest)), len(templates.Manifest))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		created(t, c, object)
	}
	NewWithT(t).Eventually(try, time.Minute, time.Second/2).ShouldNot(Succeed())
}
