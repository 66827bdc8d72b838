// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// managed is an entry of managedFields.
func managed(manager, subresource string, at time.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Subresource: subresource, Time: ptr.To(metav1.NewTime(at)),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// Fields as API servers write them.
const (
	ofCPU      = `{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}}}}`
	ofMemory   = `{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:limits":{"f:memory":{}},"f:requests":{"f:memory":{}}}}}}}`
	ofSidecar  = `{"f:spec":{"f:initContainers":{"k:{\"name\":\"side\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}}}}`
	ofPod      = `{"f:spec":{"f:resources":{"f:limits":{"f:memory":{}},"f:requests":{"f:cpu":{}}}}}`
	ofAnything = `{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:limits":{},"f:requests":{}}}}}}`
)

func TestWritten(t *testing.T) {
	const spec = `
resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}}
initContainers: [{name: side, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]
containers:
- {name: main, resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 32Mi}}}
- {name: side-2, resources: {requests: {cpu: 100m}}}`
	later := moment.Add(time.Minute)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    []Field
		at      time.Time
	}{
		"a pod that no client resized": {
			entries: []metav1.ManagedFieldsEntry{managed("kube-controller-manager", "", moment, ofCPU)},
		},
		"a container": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, ofCPU)},
			want:    []Field{cpuRequest}, at: moment,
		},
		"requests and limits": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, ofMemory)},
			want:    []Field{memoryRequest, memoryLimit}, at: moment,
		},
		"a native sidecar": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, ofSidecar)},
			want:    []Field{sideRequest}, at: moment,
		},
		"the pod itself": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, ofPod)},
			want:    []Field{podRequest, podLimit}, at: moment,
		},
		"several entries; the last write counts": {
			entries: []metav1.ManagedFieldsEntry{
				managed("insitu", "resize", moment, ofPod), managed("insitu", "resize", later, ofCPU), managed("insitu", "resize", moment, ofSidecar),
			},
			want: []Field{cpuRequest, podRequest, podLimit, sideRequest}, at: later,
		},
		"another manager": {
			entries: []metav1.ManagedFieldsEntry{managed("vpa-updater", "resize", later, ofCPU), managed("insitu", "resize", moment, ofMemory)},
			want:    []Field{memoryRequest, memoryLimit}, at: moment,
		},
		"a manager whose name begins alike": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu-2", "resize", moment, ofCPU)},
		},
		"other writes of ours": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "", later, ofCPU), managed("insitu", "status", later, ofMemory)},
		},
		"the shells that stay when others took the values": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, ofAnything)},
			at:      moment,
		},
		"a field that the pod does not have any more": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment,
				`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}}}}`)},
			at: moment,
		},
		"what is no list or no object": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", moment, `{"f:spec":{"f:containers":[1]}}`)},
		},
		"broken fields do not hide those of the next entry": {
			entries: []metav1.ManagedFieldsEntry{managed("insitu", "resize", later, `{"f:spec":`), managed("insitu", "resize", moment, ofCPU)},
			want:    []Field{cpuRequest}, at: moment,
		},
		"no fields": {
			entries: []metav1.ManagedFieldsEntry{{Manager: "insitu", Subresource: "resize", Time: ptr.To(metav1.NewTime(moment))}},
		},
		"no time": {
			entries: []metav1.ManagedFieldsEntry{{Manager: "insitu", Subresource: "resize", FieldsV1: metav1.NewFieldsV1(ofCPU)}},
			want:    []Field{cpuRequest},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := podOf(t, spec)
			pod.ManagedFields = test.entries
			fields, at := Written(pod)
			g.Expect(sets.List(paths(fields))).To(Equal(sets.List(paths(sets.New(test.want...)))))
			g.Expect(at).To(BeTemporally("==", test.at))
		})
	}
}

func paths(fields sets.Set[Field]) sets.Set[string] {
	all := sets.New[string]()
	for field := range fields {
		all.Insert(field.String())
	}
	return all
}

// Container names are DNS labels today. The keys are JSON, so whatever is in a name
// is escaped as JSON does it.
func TestNamesInManagedFieldsAreUnescaped(t *testing.T) {
	g := NewWithT(t)
	for name, key := range map[string]string{
		"main":       `k:{"name":"main"}`,
		"f-requests": `k:{"name":"f-requests"}`,
		`a"b\c`:      `k:{"name":"a\"b\\c"}`,
		"":           `v:"other"`,
	} {
		g.Expect(nameIn(key)).To(Equal(name))
	}
}
