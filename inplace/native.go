// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Templates of the workloads of Kubernetes itself differ from those of ours in three things:
// ReplicaSets add a label of their own, people change other annotations, too, to have
// all containers started again, and pods have no readiness gates but those of the template.

// Native returns the template as that of a workload of Kubernetes: without the label
// that ReplicaSets add, and such that every container that runs is restarted when an
// annotation changes that people change for that.
func (t *Template) Native() *Template {
	fields := runtime.DeepCopyJSON(t.fields)
	unstructured.RemoveNestedField(fields, "metadata", "labels", appsv1beta1.PodTemplateHashLabel)
	native := newTemplate(fields)
	native.native = true
	for _, key := range slices.Sorted(maps.Keys(native.annotations)) {
		if asksForRestart(key) {
			native.fieldRefs = append(native.fieldRefs, restartedBy(key, native.live)...)
		}
	}
	return native
}

// restartPrefixes begin the annotations of pod templates that people change to have
// pods recreated: a checksum of the configuration, as Helm's documentation proposes, the
// note of a tool that reloads configuration, a random text.
var restartPrefixes = []string{"checksum/", "reloader.stakater.com/", "rollme"}

// asksForRestart reports whether a change of the annotation asks for a restart.
func asksForRestart(key string) bool {
	return slices.ContainsFunc(restartPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
