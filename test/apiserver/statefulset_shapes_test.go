// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestManifestsOfUsers applies manifests as users have them, in both versions,
// and checks that nothing they wrote is lost.
func TestManifestsOfUsers(t *testing.T) {
	c := strictClient(t)

	files, err := filepath.Glob("testdata/*.yaml")
	must(t, err)

	for _, version := range versions() {
		for _, file := range files {
			t.Run(version+"/"+filepath.Base(file), func(t *testing.T) {
				g := NewWithT(t)

				raw, err := os.ReadFile(file)
				must(t, err)

				written := parse(t, string(raw))
				written.SetAPIVersion(version)
				written.SetNamespace("default")
				stored := written.DeepCopy()
				created(t, c, stored)

				g.Expect(missing("", written.Object, stored.Object)).To(BeEmpty())
			})
		}
	}
}

// missing lists the fields of written that are not in stored as they were
// written. What stored has beyond them, such as defaults, does not count.
func missing(path string, written, stored any) []string {
	var lost []string

	switch w := written.(type) {
	case map[string]any:
		s, _ := stored.(map[string]any)
		for key, value := range w {
			lost = append(lost, missing(path+"."+key, value, s[key])...)
		}
	case []any:
		s, _ := stored.([]any)
		for i, value := range w {
			if i >= len(s) {
				lost = append(lost, path)

				break
			}

			lost = append(lost, missing(path+"[]", value, s[i])...)
		}
	case nil: // A null is the same as an absent field.
	default:
		if written != stored {
			lost = append(lost, path)
		}
	}

	return lost
}

func TestDefaults(t *testing.T) {
	c := strictClient(t)

	cases := map[string]struct {
		patch    string
		defaults map[string]any
		absent   []string
	}{
		"of a set": {
			patch: `spec: {podManagementPolicy: null}`,
			defaults: map[string]any{
				"replicas": int64(1), "revisionHistoryLimit": int64(10), "podManagementPolicy": "OrderedReady",
			},
			absent: []string{
				"serviceName", "volumeClaimUpdateStrategy", "persistentVolumeClaimRetentionPolicy",
				"ordinals", "lifecycle", "scaleStrategy",
			},
		},
		"of an absent update strategy":    {defaults: map[string]any{"updateStrategy": rollingUpdate()}},
		"of an update strategy":           {patch: `spec: {updateStrategy: {rollingUpdate: {}}}`, defaults: map[string]any{"updateStrategy": rollingUpdate()}},
		"of an update strategy by a type": {patch: `spec: {updateStrategy: {type: RollingUpdate}}`, defaults: map[string]any{"updateStrategy": rollingUpdate()}},
		"of claims": {
			patch: `spec: {volumeClaimUpdateStrategy: {}, persistentVolumeClaimRetentionPolicy: {}}`,
			defaults: map[string]any{
				"volumeClaimUpdateStrategy":            map[string]any{"type": "OnDelete"},
				"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"},
			},
		},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				g := NewWithT(t)

				object := patched(t, version, test.patch)
				must(t, c.Create(t.Context(), object, client.DryRunAll))

				spec := object.Object["spec"].(map[string]any)
				for field, value := range test.defaults {
					g.Expect(spec).To(HaveKeyWithValue(field, value))
				}

				for _, field := range test.absent {
					g.Expect(spec).NotTo(HaveKey(field))
				}
			})
		}
	}
}

// rollingUpdate is the update strategy that says nothing but defaults.
func rollingUpdate() map[string]any {
	return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
		"partition": int64(0), "maxUnavailable": int64(1), "podUpdatePolicy": "ReCreate", "minReadySeconds": int64(0),
	}}
}

// TestOnDeleteAfterDefaults: whoever has written no rollingUpdate has none to remove.
func TestOnDeleteAfterDefaults(t *testing.T) {
	c := strictClient(t)
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			object := patched(t, version, "{}")
			created(t, c, object)

			must(t, c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"updateStrategy": {"type": "OnDelete"}}}`))))

			err := c.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"updateStrategy": {"rollingUpdate": {"paused": true}}}}`)))
			assertRefused(t, err, "spec.updateStrategy.rollingUpdate", "only accepted with type RollingUpdate")
		})
	}
}

// TestTemplateHasNoDefaults checks that the API server leaves a template as it
// was written, but for the protocol of a port, without which the ports of a
// container could not be told apart.
func TestTemplateHasNoDefaults(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)

	const template = `{
		metadata: {labels: {app: sample}},
		spec: {
			imagePullSecrets: [{name: pull}],
			containers: [{name: main, image: "nginx:alpine",
				env: [{name: A, valueFrom: {configMapKeyRef: {key: a}}}],
				envFrom: [{secretRef: {}}],
				livenessProbe: {grpc: {port: 80}},
				ports: [{containerPort: 80}]}],
			volumes: [{name: old, iscsi: {targetPortal: a, iqn: b, lun: 0}}, {name: rbd, rbd: {monitors: [a], image: b}}]}}`

	object := patched(t, appsv1beta1.GroupVersion.String(), "spec: {template: "+template+"}")
	written := object.DeepCopy()
	must(t, c.Create(t.Context(), object, client.DryRunAll))

	containers, _, err := unstructured.NestedSlice(written.Object, "spec", "template", "spec", "containers")
	must(t, err)
	containers[0].(map[string]any)["ports"] = []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}}
	must(t, unstructured.SetNestedSlice(written.Object, containers, "spec", "template", "spec", "containers"))

	g.Expect(object.Object["spec"].(map[string]any)["template"]).
		To(Equal(written.Object["spec"].(map[string]any)["template"]))
}

// TestUnknownFields checks that a field we do not know is refused under strict
// validation, the default of kubectl.
func TestUnknownFields(t *testing.T) {
	c := strictClient(t)

	cases := map[string]refusal{
		"of a set":        {`spec: {replica: 3}`, []string{`unknown field "spec.replica"`}},
		"of a strategy":   {`spec: {updateStrategy: {rollingUpdate: {maxSurge: 1}}}`, []string{`unknown field "spec.updateStrategy.rollingUpdate.maxSurge"`}},
		"of a template":   {`spec: {template: {spec: {hostnames: a}}}`, []string{`unknown field "spec.template.spec.hostnames"`}},
		"of metadata":     {`spec: {template: {metadata: {label: {a: b}}}}`, []string{`unknown field "spec.template.metadata.label"`}},
		"of a container":  {`spec: {template: {spec: {containers: [{name: main, image: a, imagePullpolicy: Always}]}}}`, []string{`unknown field "spec.template.spec.containers[0].imagePullpolicy"`}},
		"of a claim":      {`spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], size: 1Gi, resources: {requests: {storage: 1Gi}}}}]}`, []string{`unknown field "spec.volumeClaimTemplates[0].spec.size"`}},
		"several at once": {`spec: {replica: 3, template: {spec: {hostnames: a}}}`, []string{`"spec.replica"`, `"spec.template.spec.hostnames"`}},
	}

	for _, version := range versions() {
		for name, test := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				err := c.Create(t.Context(), patched(t, version, test.patch), client.DryRunAll)
				assertRefused(t, err, test.want...)
			})
		}
	}
}

// TestUnknownFieldsAreNeverDroppedInSilence checks that a client that has
// switched strict validation off is told what was dropped.
func TestUnknownFieldsAreNeverDroppedInSilence(t *testing.T) {
	g := NewWithT(t)

	said := &warnings{}
	config := rest.CopyConfig(server)
	config.WarningHandlerWithContext = said

	c, err := client.New(config, client.Options{})
	must(t, err)

	object := patched(t, appsv1beta1.GroupVersion.String(), `spec: {template: {spec: {hostnames: a}}}`)
	must(t, c.Create(t.Context(), object, client.DryRunAll))

	g.Expect(said.texts).To(ContainElement(ContainSubstring(`unknown field "spec.template.spec.hostnames"`)))

	_, kept, err := unstructured.NestedString(object.Object, "spec", "template", "spec", "hostnames")
	must(t, err)
	g.Expect(kept).To(BeFalse())
}

// warnings collects what the API server says beside its answer.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.texts = append(w.texts, text)
}
