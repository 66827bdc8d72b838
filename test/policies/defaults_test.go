// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	older = "v1alpha1"
	newer = "v1beta1"
)

// write is one write of a set, by one client.
type write struct {
	// version is the one that the client speaks.
	version string
	// spec is what it writes of spec, in YAML.
	spec string
	// how it does so: apply if it is absent.
	how func(ctx context.Context, c client.Client, stored, spec *unstructured.Unstructured) error
}

// apply is a server-side apply: what the last one of the same client had, and this one
// has not, is removed.
func apply(ctx context.Context, c client.Client, _, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("pipeline"), client.ForceOwnership)
}

// merge is a JSON merge patch, as kubectl patch and many tools send it.
func merge(ctx context.Context, c client.Client, stored, object *unstructured.Unstructured) error {
	stored.SetGroupVersionKind(object.GroupVersionKind())
	patch, err := yaml.Marshal(map[string]any{"spec": patchOf(object)})
	if err != nil {
		return err
	}
	if patch, err = yaml.YAMLToJSON(patch); err != nil {
		return err
	}

	return c.Patch(ctx, stored, client.RawPatch("application/merge-patch+json", patch))
}

// patchOf returns what a write says of spec, without what the others need.
func patchOf(object *unstructured.Unstructured) map[string]any {
	patch := map[string]any{}
	for key, value := range object.Object["spec"].(map[string]any) {
		if key == "updateStrategy" || key == "scaleStrategy" {
			patch[key] = value
		}
	}

	return patch
}

// replace writes the whole object: what it does not say is gone.
func replace(ctx context.Context, c client.Client, stored, object *unstructured.Unstructured) error {
	object.SetResourceVersion(stored.GetResourceVersion())
	return c.Update(ctx, object)
}

// setOf returns a set with a name, in a version, with more in its spec.
func setOf(t *testing.T, kind, name, version, spec string) *unstructured.Unstructured {
	t.Helper()
	labels := map[string]any{"app": name}
	content := map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}},
		},
	}
	more := map[string]any{}
	must(t, yaml.Unmarshal([]byte(spec), &more))
	maps.Copy(content, more)

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/" + version,
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       content,
	}}
}

// story is a sequence of writes of one set, and what is stored in the end.
type story struct {
	writes []write
	// want is spec.updateStrategy, in YAML.
	want string
	// wantScale is spec.scaleStrategy, in YAML; not looked at if it is empty.
	wantScale string
	// refused is what the API server says of the last write; empty if it accepts it.
	refused string
}

// tell makes the writes and compares what is stored.
func (s story) tell(t *testing.T, kind string) {
	t.Helper()
	g := NewWithT(t)
	c := newClient(t)
	const name = "told"
	stored := setOf(t, kind, name, newer, "")
	for i, w := range s.writes {
		how := w.how
		if how == nil {
			how = apply
		}
		err := how(t.Context(), c, stored.DeepCopy(), setOf(t, kind, name, w.version, w.spec))
		if i == 0 && err == nil {
			t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), stored))) })
		}
		if s.refused != "" && i == len(s.writes)-1 {
			g.Expect(err).To(MatchError(ContainSubstring(s.refused)))
			return
		}
		must(t, err)
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	}

	g.Expect(at(stored, "updateStrategy")).To(Equal(parsed(t, s.want)))
	if s.wantScale != "" {
		g.Expect(at(stored, "scaleStrategy")).To(Equal(parsed(t, s.wantScale)))
	}
	again := stored.DeepCopy()
	must(t, c.Update(t.Context(), again))
	g.Expect(again.GetGeneration()).To(Equal(stored.GetGeneration()), "what is settled stays as it is")
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	must(t, c.Update(t.Context(), again))
	g.Expect(again.GetResourceVersion()).To(Equal(stored.GetResourceVersion()), "what is settled costs no write")
	last := s.writes[len(s.writes)-1]
	if last.how == nil {
		must(t, apply(t.Context(), c, nil, setOf(t, kind, name, last.version, last.spec)))
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(stored), again))
		g.Expect(again.GetResourceVersion()).To(Equal(stored.GetResourceVersion()), "to apply a manifest again changes nothing")
	}
}

func at(set *unstructured.Unstructured, field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", field)
	return value
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Any, value: " + text + "}"))
	must(t, err)
	must(t, object.UnmarshalJSON(data))

	return object.Object["value"]
}

// TestWrittenDefaultsOfCloneSets looks at what clients find that know one of the places:
// beside type, and in rollingUpdate.
func TestWrittenDefaultsOfCloneSets(t *testing.T) {
	const byPriority = `priorityStrategy: {orderPriority: [{orderedKey: order}]}`
	stories := map[string]story{
		"nothing is written": {
			writes: []write{{version: newer}},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"nothing is written by a client of v1alpha1": {
			writes: []write{{version: older}},
			want: `{type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"flat": {
			writes: []write{{version: older, spec: `updateStrategy: {type: InPlaceIfPossible, partition: 30%, paused: true}`}},
			want: `{type: InPlaceIfPossible, partition: 30%, maxUnavailable: 20%, maxSurge: 0, paused: true,
				rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 30%, maxUnavailable: 20%, maxSurge: 0, paused: true}}`,
		},
		"nested": {
			writes: []write{{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxUnavailable: 2}}`}},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 2, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 0, maxUnavailable: 2, maxSurge: 0}}`,
		},
		"flat in v1beta1": {
			writes: []write{{version: newer, spec: `updateStrategy: {type: InPlaceOnly, maxUnavailable: 2}`}},
			want: `{type: InPlaceOnly, partition: 0, maxUnavailable: 2, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 0, maxUnavailable: 2, maxSurge: 0}}`,
		},
		"OnDelete": {
			writes: []write{{version: older, spec: `updateStrategy: {type: OnDelete}`}},
			want: `{type: OnDelete, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"details stay where they are written": {
			writes: []write{{version: newer, spec: `updateStrategy: {rollingUpdate: {` + byPriority + `}}`}},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0, ` + byPriority + `}}`,
		},
		"two places that contradict each other": {
			writes:  []write{{version: newer, spec: `updateStrategy: {partition: 2, rollingUpdate: {partition: 3}}`}},
			refused: "updateStrategy.partition 2 and updateStrategy.rollingUpdate.partition 3 disagree: keep one",
		},
		"two places that contradict each other, one by a default": {
			writes:  []write{{version: newer, spec: `updateStrategy: {partition: 2, rollingUpdate: {partition: 0}}`}},
			refused: "updateStrategy.partition 2 and updateStrategy.rollingUpdate.partition 0 disagree: keep one",
		},
		"a partition that is no longer in the manifest": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {partition: 3, maxUnavailable: 1, paused: true}}`},
				{version: newer, spec: `updateStrategy: {rollingUpdate: {maxUnavailable: 1}}`},
			},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 1, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 1, maxSurge: 0}}`,
		},
		"a flat partition that is no longer in the manifest": {
			writes: []write{
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible, partition: 3, paused: true}`},
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible}`},
			},
			want: `{type: InPlaceIfPossible, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"an update strategy that is no longer in the manifest": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3}}`},
				{version: newer},
			},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a flat update strategy that is no longer in the manifest": {
			writes: []write{
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible, partition: 3}`},
				{version: older},
			},
			want: `{type: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a tool of v1alpha1 moves the partition of a nested set": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 3}}`},
				{version: older, spec: `updateStrategy: {partition: 0, paused: true}`, how: merge},
			},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0, paused: true,
				rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 0, maxUnavailable: 20%, maxSurge: 0, paused: true}}`,
		},
		"a tool of v1beta1 moves the partition of a flat set": {
			writes: []write{
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible, partition: 3, paused: true}`},
				{version: newer, spec: `updateStrategy: {rollingUpdate: {partition: 1, paused: null}}`, how: merge},
			},
			want: `{type: InPlaceIfPossible, partition: 1, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a manifest that says what a tool has moved": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {partition: 3}}`},
				{version: older, spec: `updateStrategy: {partition: 1}`, how: merge},
				{version: newer, spec: `updateStrategy: {rollingUpdate: {partition: 3}}`},
			},
			want: `{type: RollingUpdate, partition: 3, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 3, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a client of v1alpha1 writes a nested set whole": {
			writes: []write{
				{version: newer, spec: `{updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 3, ` + byPriority + `}},
					scaleStrategy: {enablePVCReuse: false, podsToDelete: [a]}}`},
				{version: older, how: replace, spec: `{updateStrategy: {type: RollingUpdate, partition: 2, maxUnavailable: 20%, maxSurge: 0},
					scaleStrategy: {podsToDelete: [b]}}`},
			},
			want: `{type: RollingUpdate, partition: 2, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 2, maxUnavailable: 20%, maxSurge: 0, ` + byPriority + `}}`,
			wantScale: `{enablePVCReuse: false, podsToDelete: [b]}`,
		},
		"a client of v1alpha1 resumes a nested set that it writes whole": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {paused: true}}`},
				{version: older, how: replace, spec: `updateStrategy: {type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0}`},
			},
			want: `{type: RollingUpdate, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a client of v1beta1 writes a flat set whole": {
			writes: []write{
				{version: older, spec: `{updateStrategy: {type: InPlaceOnly, partition: 3, ` + byPriority + `}, scaleStrategy: {disablePVCReuse: true}}`},
				{version: newer, how: replace, spec: `updateStrategy: {type: InPlaceOnly,
					rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 2, maxUnavailable: 20%, maxSurge: 0}}`},
			},
			want: `{type: InPlaceOnly, partition: 2, maxUnavailable: 20%, maxSurge: 0, ` + byPriority + `,
				rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 2, maxUnavailable: 20%, maxSurge: 0}}`,
			wantScale: `{disablePVCReuse: true}`,
		},
		"a client of v1beta1 changes the policy of a flat set": {
			writes: []write{
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible}`},
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}`, how: merge},
			},
			want: `{type: InPlaceOnly, partition: 0, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 0, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"a client of v1alpha1 changes the type": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 2}}`},
				{version: older, spec: `updateStrategy: {type: ReCreate}`, how: merge},
			},
			want: `{type: ReCreate, partition: 2, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: ReCreate, partition: 2, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"type and policy that contradict each other": {
			writes: []write{
				{version: newer},
				{version: newer, spec: `updateStrategy: {type: InPlaceOnly, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}`, how: merge},
			},
			refused: "updateStrategy.type InPlaceOnly and updateStrategy.rollingUpdate.podUpdatePolicy InPlaceIfPossible disagree",
		},
		"a manifest that is written the other way": {
			writes: []write{
				{version: older, spec: `updateStrategy: {type: InPlaceIfPossible, partition: 3, maxUnavailable: 1}`},
				{version: newer, spec: `updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1}}`},
			},
			want: `{type: RollingUpdate, partition: 1, maxUnavailable: 20%, maxSurge: 0,
				rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1, maxUnavailable: 20%, maxSurge: 0}}`,
		},
		"what is no strategy": {
			writes:  []write{{version: newer, spec: `updateStrategy: fast`}},
			refused: "spec.updateStrategy",
		},
	}
	for name, s := range stories {
		t.Run(name, func(t *testing.T) { s.tell(t, "CloneSet") })
	}
}

// TestWrittenDefaultsOfStatefulSets looks at what clients find in rollingUpdate.
func TestWrittenDefaultsOfStatefulSets(t *testing.T) {
	const defaults = `{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate, partition: 0, maxUnavailable: 1, minReadySeconds: 0}}`
	stories := map[string]story{
		"nothing is written": {writes: []write{{version: newer}}, want: defaults},
		"nothing but a type": {writes: []write{{version: older, spec: `updateStrategy: {type: RollingUpdate}`}}, want: defaults},
		"a part of it": {
			writes: []write{{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}`}},
			want:   `{type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 0, maxUnavailable: 1, minReadySeconds: 0}}`,
		},
		"a partition that is no longer in the manifest": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {partition: 2}}`},
				{version: newer},
			},
			want: defaults,
		},
		"OnDelete": {
			writes: []write{{version: newer, spec: `updateStrategy: {type: OnDelete}`}},
			want:   `{type: OnDelete}`,
		},
		"OnDelete after defaults": {
			writes: []write{{version: newer}, {version: newer, spec: `updateStrategy: {type: OnDelete}`}},
			want:   `{type: OnDelete}`,
		},
		"OnDelete after a manifest with parameters": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, partition: 1}}`},
				{version: newer, spec: `updateStrategy: {type: OnDelete}`},
			},
			want: `{type: OnDelete}`,
		},
		"OnDelete by a patch": {
			writes: []write{{version: older}, {version: older, spec: `updateStrategy: {type: OnDelete}`, how: merge}},
			want:   `{type: OnDelete}`,
		},
		"OnDelete and back": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {type: OnDelete}`},
				{version: newer, spec: `updateStrategy: {type: RollingUpdate}`, how: merge},
			},
			want: defaults,
		},
		"OnDelete by a patch, with parameters that would be lost": {
			writes: []write{
				{version: newer, spec: `updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}`},
				{version: newer, spec: `updateStrategy: {type: OnDelete}`, how: merge},
			},
			refused: "updateStrategy.rollingUpdate is only accepted with type RollingUpdate",
		},
		"what is no strategy": {
			writes:  []write{{version: newer, spec: `updateStrategy: fast`}},
			refused: "spec.updateStrategy",
		},
	}
	for name, s := range stories {
		t.Run(name, func(t *testing.T) { s.tell(t, "StatefulSet") })
	}
}
