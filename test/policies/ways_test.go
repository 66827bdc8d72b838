// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// specs are what users say of a kind, in more and fewer words. The rest of their
// manifests is in manifest.
var specs = map[string]map[string]string{
	"Deployment": {
		"no strategy":  `{}`,
		"not paused":   `{paused: false}`,
		"a type":       `{strategy: {type: RollingUpdate}}`,
		"numbers":      `{minReadySeconds: 5, progressDeadlineSeconds: 60, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}`,
		"a whole wish": `{paused: false, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 30%}}}`,
	},
	"StatefulSet": {
		"no strategy":  `{serviceName: web}`,
		"a type":       `{serviceName: web, updateStrategy: {type: RollingUpdate}}`,
		"numbers":      `{serviceName: web, updateStrategy: {rollingUpdate: {partition: 2, maxUnavailable: 30%}}}`,
		"a whole wish": `{serviceName: web, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2, maxUnavailable: 2}}}`,
	},
	"DaemonSet": {
		"no strategy":  `{}`,
		"a type":       `{updateStrategy: {type: RollingUpdate}}`,
		"numbers":      `{updateStrategy: {rollingUpdate: {maxUnavailable: 30%}}}`,
		"a whole wish": `{updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}}`,
	},
}

// TestLife leads two workloads through the same writes of a user. One has opted in,
// and is held and released on the way. In the end they are the same, down to who owns
// which field, and none of the writes was refused.
func TestLife(t *testing.T) {
	for kind, ofKind := range specs {
		for words, spec := range ofKind {
			for way, write := range map[string]func(*user, *unstructured.Unstructured){
				"client-side apply": (*user).applyClientSide,
				"server-side apply": (*user).applyServerSide,
				"replacement":       (*user).replace,
			} {
				t.Run(kind+"/"+words+"/"+way, func(t *testing.T) {
					if testing.Short() && way == "client-side apply" && words != "a whole wish" {
						t.Skip("make test-all runs it: kubectl takes a second for each write")
					}
					l := life{user: newUser(t), write: write, kind: kind, spec: spec}

					NewWithT(t).Expect(l.held()).To(Equal(l.free()))
				})
			}
		}
	}
}

// life is what a workload goes through.
type life struct {
	*user
	write      func(*user, *unstructured.Unstructured)
	kind, spec string
}

// held is a life with the policies and the manager. It returns what is left.
func (l life) held() string {
	l.t.Helper()
	manifest := func(image string) *unstructured.Unstructured {
		obj := l.manifest("held", image)
		obj.SetLabels(map[string]string{"insitu.dev/update-policy": "InPlaceIfPossible"})

		return obj
	}
	workload := manifest("nginx:1")
	l.begin(workload)

	l.write(l.user, manifest("nginx:2"))
	l.expectHeld(workload, "after a change")
	l.patch(workload, "insitu", `metadata: {annotations: {insitu.dev/status: "{}"}}`)
	l.write(l.user, manifest("nginx:2"))
	l.expectHeld(workload, "after the same manifest")
	l.write(l.user, manifest("nginx:3"))
	l.expectHeld(workload, "after another change")
	l.patch(workload, "insitu", `metadata: {labels: {insitu.dev/held: release}}`)
	generation := l.get(workload).GetGeneration()
	l.write(l.user, manifest("nginx:3"))

	obj := l.get(workload)
	NewWithT(l.t).Expect(obj.GetGeneration()).To(Equal(generation), "the manifest has nothing to change any more")
	NewWithT(l.t).Expect(obj.GetLabels()).To(Equal(workload.GetLabels()))

	return l.remains(obj)
}

// free is the same life without them.
func (l life) free() string {
	l.t.Helper()
	workload := l.manifest("free", "nginx:1")
	l.begin(workload)
	for _, image := range []string{"nginx:2", "nginx:2", "nginx:3", "nginx:3"} {
		l.write(l.user, l.manifest("free", image))
	}

	return l.remains(l.get(workload))
}

// begin writes a workload for the first time, and the status that its controller would.
func (l life) begin(workload *unstructured.Unstructured) {
	l.t.Helper()
	l.write(l.user, workload)
	status := `{"status": {"replicas": 1}}`
	if l.kind == "DaemonSet" {
		status = `{"status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 1}}`
	}
	must(l.t, l.c.Status().Patch(l.t.Context(), workload.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(status)),
		client.FieldOwner("kube-controller-manager")))
	l.t.Cleanup(func() {
		if err := l.c.Delete(context.WithoutCancel(l.t.Context()), workload); err != nil {
			l.t.Errorf("delete: %v", err)
		}
	})
}

// manifest is what the user writes.
func (l life) manifest(name, image string) *unstructured.Unstructured {
	l.t.Helper()
	spec := map[string]any{}
	must(l.t, yaml.Unmarshal([]byte(l.spec), &spec))
	labels := map[string]any{"app": "web"}
	spec["selector"] = map[string]any{"matchLabels": labels}
	spec["template"] = map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": l.kind, "spec": spec}}
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetName(name)
	obj.SetLabels(map[string]string{"example.io/other": "InPlaceIfPossible"})

	return obj
}

// remains is what a workload has that does not depend on its name and the time: the
// spec, the keys of its annotations, and the fields of each manager but ours.
func (l life) remains(workload *unstructured.Unstructured) string {
	l.t.Helper()
	type fields struct {
		Manager, Operation, Fields string
	}
	left := struct {
		Spec        any
		Annotations []string
		Managers    []fields
	}{Spec: workload.Object["spec"]}
	for key := range workload.GetAnnotations() {
		left.Annotations = append(left.Annotations, key)
	}
	slices.Sort(left.Annotations)
	for _, entry := range workload.GetManagedFields() {
		if entry.Manager != "insitu" {
			text := strings.ReplaceAll(entry.FieldsV1.GetRawString(), "example.io/other", "insitu.dev/update-policy")
			left.Managers = append(left.Managers, fields{entry.Manager, string(entry.Operation), text})
		}
	}
	text, err := yaml.Marshal(left)
	must(l.t, err)

	return string(text)
}
