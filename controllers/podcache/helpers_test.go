// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"os"
	"reflect"
	goruntime "runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func sliceOf(service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-x", Namespace: "shop", UID: "slice", ResourceVersion: "7",
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: managedByController},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
	}
}

func endpoint(pod string, uid types.UID, conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{"10.0.0.1"},
		Conditions: conditions,
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod, UID: uid},
	}
}

// ordinaryPod is a pod of a small web server, as a kubelet has it running.
func ordinaryPod(tb testing.TB) *corev1.Pod {
	tb.Helper()
	data, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		tb.Fatal(err)
	}

	return pod
}

// message is an object as it comes from the API server.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// measureTrim reports the bytes that an object takes in the cache, each read by
// itself.
func measureTrim(b *testing.B, whole message, trim cache.TransformFunc, unit string) {
	b.Helper()
	data, err := whole.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	cached := make([]any, b.N)
	before := heap()
	for i := range cached {
		object := reflect.New(reflect.TypeOf(whole).Elem()).Interface().(message)
		if err := object.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
		if cached[i], err = trim(object); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(heap()-before)/float64(b.N), unit)
	clear(cached)
}

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)

	return stats.HeapAlloc
}
