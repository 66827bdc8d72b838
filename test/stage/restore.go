// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/apiserver"
)

// Restore puts the objects of a file into a namespace, and returns them as the API server has them
// then, and the newest time that is written down in the file.
//
// An upgrade exchanges the operator and leaves etcd alone, so that is where the
// objects are put. Through the API they would get other UIDs, which owners and
// records name, and other generations, which the kubelet has reported to have
// seen.
func Restore(ctx context.Context, server *apiserver.Server, live client.Reader, namespace, file string) ([]*unstructured.Unstructured, time.Time) {
	GinkgoHelper()
	raw, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	list := &unstructured.UnstructuredList{}
	Expect(yaml.Unmarshal(raw, list)).To(Succeed())
	left := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		obj := &list.Items[i]
		obj.SetNamespace(namespace)
		stored, err := json.Marshal(obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.Store(ctx, storageKey(obj), stored)).To(Succeed())
		left = append(left, Read(ctx, live, obj))
	}
	return left, newest(raw)
}

// storageKey returns where the API server keeps an object in etcd.
func storageKey(obj *unstructured.Unstructured) string {
	GinkgoHelper()
	resource := map[string]string{
		"StatefulSet":           "apps.kruise.io/statefulsets",
		"DaemonSet":             "apps.kruise.io/daemonsets",
		"ControllerRevision":    "controllerrevisions",
		"Pod":                   "pods",
		"PersistentVolumeClaim": "persistentvolumeclaims",
		"EndpointSlice":         "endpointslices",
	}[obj.GetKind()]
	Expect(resource).NotTo(BeEmpty(), "kind %s", obj.GetKind())
	return strings.Join([]string{"/registry", resource, obj.GetNamespace(), obj.GetName()}, "/")
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// newest returns the newest time that is written down in a file.
func newest(raw []byte) time.Time {
	GinkgoHelper()
	last := ""
	for _, found := range timestamp.FindAllString(string(raw), -1) {
		last = max(last, found)
	}
	at, err := time.Parse(time.RFC3339, last)
	Expect(err).NotTo(HaveOccurred())
	return at
}

// Read returns an object as the API server has it.
func Read(ctx context.Context, live client.Reader, obj *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(obj.GroupVersionKind())
	Expect(live.Get(ctx, client.ObjectKeyFromObject(obj), found)).To(Succeed())
	return found
}
