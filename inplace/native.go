// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Templates of the workloads of Kubernetes itself differ from those of ours in three
// things: the API server has filled in the defaults, ReplicaSets add a label of
// their own, and people change other annotations, too, to have all containers started
// again.

// Native returns the template as that of a workload of Kubernetes: without the label
// that ReplicaSets add, and such that every container that runs is restarted when an
// annotation changes that people change for that.
func (t *Template) Native() *Template {
	fields := runtime.DeepCopyJSON(t.fields)
	unstructured.RemoveNestedField(fields, "metadata", "labels", appsv1beta1.PodTemplateHashLabel)
	native := newTemplate(fields)
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

// DefaultedLike returns the template with the pull policies of another one, where in
// both they are what the API server fills in. The one for nginx:latest is another
// than that for nginx:alpine, and nobody has changed anything but the image then.
// Both are templates with their defaults filled in.
func (t *Template) DefaultedLike(other *Template) *Template {
	theirs := defaultPullPolicies(other.fields)
	aligned := map[string]string{}
	for container, policy := range defaultPullPolicies(t.fields) {
		if found, ok := theirs[container]; ok && found != policy {
			aligned[container] = found
		}
	}
	if len(aligned) == 0 {
		return t
	}
	like := *t
	like.fields = withPullPolicies(t.fields, aligned)
	like.fixed = withPullPolicies(t.fixed, aligned)
	return &like
}

// defaultPullPolicies returns the pull policies that are those by default, by
// container.
func defaultPullPolicies(fields map[string]any) map[string]string {
	found := map[string]string{}
	for _, container := range containerFields(fields) {
		name, _ := container["name"].(string)
		image, _ := container["image"].(string)
		if policy, _ := container["imagePullPolicy"].(string); policy == string(defaultPullPolicy(image)) {
			found[name] = policy
		}
	}
	return found
}

// defaultPullPolicy returns the pull policy of a container that does not say one.
// Source: SetDefaults_Container of k8s.io/kubernetes.
func defaultPullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// withPullPolicies returns a copy of fields with other pull policies.
func withPullPolicies(fields map[string]any, policies map[string]string) map[string]any {
	fields = runtime.DeepCopyJSON(fields)
	for _, container := range containerFields(fields) {
		name, _ := container["name"].(string)
		if policy, ok := policies[name]; ok {
			container["imagePullPolicy"] = policy
		}
	}
	return fields
}

// containerFields returns the containers and init containers in the fields of a
// template, which may be changed by them.
func containerFields(fields map[string]any) []map[string]any {
	spec, _ := fields["spec"].(map[string]any)
	var found []map[string]any
	for _, kind := range containerKinds {
		list, _ := spec[kind].([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok {
				found = append(found, container)
			}
		}
	}
	return found
}
