// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	fields := map[string]any{}
	NewWithT(t).Expect(utiljson.Unmarshal([]byte(text), &fields)).To(Succeed())
	return fields
}

// What types lose of a template comes back where it was, beside what has changed.
func TestFieldsThatTypesLose(t *testing.T) {
	for name, test := range map[string]struct{ whole, known, newer, changed, back string }{
		"none":              {`{"a":"1"}`, `{"a":"2","b":"3"}`, `null`, `{"a":"2"}`, `{"a":"2"}`},
		"of the template":   {`{"a":"1","orbit":7}`, `{"a":"1"}`, `{"orbit":7}`, `{"a":"2"}`, `{"a":"2","orbit":7}`},
		"that are null":     {`{"a":null}`, `{}`, `null`, `{}`, `{}`},
		"in what is absent": {`{"s":{"orbit":7}}`, `{"s":{}}`, `{"s":{"orbit":7}}`, `{}`, `{"s":{"orbit":7}}`},
		"of the second container": {
			`{"c":[{"n":"a"},{"n":"b","orbit":7}]}`, `{"c":[{"n":"a"},{"n":"b"}]}`, `{"c":[null,{"orbit":7}]}`,
			`{"c":[{"n":"a"},{"n":"c"}]}`, `{"c":[{"n":"a"},{"n":"c","orbit":7}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			newer, _ := without(parsed(t, test.whole), parsed(t, test.known)).(map[string]any)
			g.Expect(newer).To(Equal(parsed(t, test.newer)), "of nothing, nil is parsed")
			g.Expect(with(parsed(t, test.changed), newer)).To(Equal(parsed(t, test.back)))
		})
	}
}

func TestDifferingNamesTheField(t *testing.T) {
	for path, pair := range map[string][2]string{
		"":        {`{"a":{"b":1}}`, `{"a":{"b":1}}`},
		".a.b":    {`{"a":{"b":1}}`, `{"a":{"b":2}}`},
		".a.c":    {`{"a":{"b":1}}`, `{"a":{"b":1,"c":1}}`},
		".list":   {`{"list":[1]}`, `{"list":[2]}`},
		".a.gone": {`{"a":{"gone":1}}`, `{}`},
	} {
		NewWithT(t).Expect(differing(parsed(t, pair[0]), parsed(t, pair[1]), "")).To(Equal(path))
	}
}

// A ReplicaSet is created without its type where that would lose a field.
func TestReplicaSetsAreCreatedWhole(t *testing.T) {
	g := NewWithT(t)
	fields := parsed(t, `{"metadata":{"labels":{"app":"web"}},"spec":{"orbit":7,"containers":[{"name":"main","image":"a"}]}}`)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &rs.Spec.Template)).To(Succeed())

	whole, err := wholeReplicaSet(rs, fields)
	g.Expect(err).NotTo(HaveOccurred())
	orbit, _, err := unstructured.NestedInt64(whole.(*unstructured.Unstructured).Object, "spec", "template", "spec", "orbit")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(orbit).To(Equal(int64(7)))
	g.Expect(whole.GetName()).To(Equal("web-1"))
	g.Expect(whole.GetObjectKind().GroupVersionKind().Kind).To(Equal("ReplicaSet"))

	unstructured.RemoveNestedField(fields, "spec", "orbit")
	g.Expect(wholeReplicaSet(rs, fields)).To(BeIdenticalTo(rs))
}
