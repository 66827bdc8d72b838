// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Admission puts containers into new pods that their template does not have: the proxy of a
// mesh, an agent. They are not changed in place, so only a new pod gets other ones.

// AsksForNewContainers reports whether the way from one template to another is that of kubectl
// rollout restart. After it, people expect of what admission puts into pods that it is what it
// puts into new ones.
func AsksForNewContainers(from, to *Template) bool {
	value, asks := to.annotations[RestartedAtAnnotation]
	before, asked := from.annotations[RestartedAtAnnotation]
	return asks && (!asked || value != before)
}

// MayInjectOtherwise reports whether labels or annotations differ between two templates that
// admission may read to decide which containers it puts into a pod.
func MayInjectOtherwise(from, to *Template) bool {
	return !maps.Equal(readByAdmission(from.labels), readByAdmission(to.labels)) ||
		!maps.Equal(readByAdmission(from.annotations), readByAdmission(to.annotations))
}

// WithMetadataOf returns a template that has those labels and annotations of another one that
// admission may read, and else is as it was.
func (t *Template) WithMetadataOf(other *Template) *Template {
	fields := runtime.DeepCopyJSON(t.fields)
	set := func(key string, own, others map[string]string) {
		kept := maps.Clone(own)
		maps.DeleteFunc(kept, func(key, _ string) bool { return isReadByAdmission(key) })
		merged := map[string]any{}
		for _, keys := range []map[string]string{kept, readByAdmission(others)} {
			for name, value := range keys {
				merged[name] = value
			}
		}
		_ = unstructured.SetNestedMap(fields, merged, "metadata", key) // its parent was a map before
	}
	set("labels", t.labels, other.labels)
	set("annotations", t.annotations, other.annotations)
	return newTemplate(fields)
}

// readByAdmission returns those of labels or annotations that admission may read.
func readByAdmission(keys map[string]string) map[string]string {
	read := maps.Clone(keys)
	maps.DeleteFunc(read, func(key, _ string) bool { return !isReadByAdmission(key) })
	return read
}

// isReadByAdmission reports whether a label or an annotation may mean something to admission: it
// is none of those that mean something to this operator alone.
func isReadByAdmission(key string) bool {
	return !ownedKeys.Has(key) && key != RestartedAtAnnotation && !strings.HasPrefix(key, appsv1beta1.RestartAnnotationPrefix)
}

// OtherImagesInjected says in words how a new pod differs from one that there is in the
// containers that their template does not have: which there are, of what kind, and from which
// images. It is empty if it does not.
func OtherImagesInjected(pod, made *corev1.Pod, template *Template) string {
	return injectedDifference(pod, made, template, func(_, _ corev1.Container) bool { return false })
}

// OtherContainersInjected says in words how two new pods, made of two templates with the same
// containers, differ in those that the templates do not have. It is empty if they do not.
func OtherContainersInjected(before, made *corev1.Pod, template *Template) string {
	return injectedDifference(before, made, template, func(one, other corev1.Container) bool {
		// The token of a service account is mounted from a volume with a name at random.
		one.VolumeMounts, other.VolumeMounts = nil, nil
		one.Env, other.Env = withoutCopies(one.Env, before), withoutCopies(other.Env, made)
		return !apiequality.Semantic.DeepEqual(one, other)
	})
}

// withoutCopies returns variables without those that hold all annotations or labels of their
// pod, as injectors write them for the record: they differ whatever changes.
func withoutCopies(env []corev1.EnvVar, pod *corev1.Pod) []corev1.EnvVar {
	return slices.DeleteFunc(slices.Clone(env), func(variable corev1.EnvVar) bool {
		copied := map[string]string{}
		if json.Unmarshal([]byte(variable.Value), &copied) != nil {
			return false
		}
		for key, value := range copied {
			if pod.Labels[key] != value && pod.Annotations[key] != value {
				return false
			}
		}
		return true
	})
}

func injectedDifference(before, made *corev1.Pod, template *Template, differ func(one, other corev1.Container) bool) string {
	var words []string
	old, now := injectedInto(before, template), injectedInto(made, template)
	for _, name := range sets.List(sets.KeySet(old).Union(sets.KeySet(now))) {
		one, was := old[name]
		other, is := now[name]
		switch {
		case !was:
			words = append(words, fmt.Sprintf("container %s is added", name))
		case !is:
			words = append(words, fmt.Sprintf("container %s is removed", name))
		case one.Image != other.Image:
			words = append(words, fmt.Sprintf("image of %s: %s to %s", name, one.Image, other.Image))
		case one.kind != other.kind || !ptr.Equal(one.RestartPolicy, other.RestartPolicy):
			words = append(words, fmt.Sprintf("container %s is one of %s", name, other.kind))
		case differ(one.Container, other.Container):
			words = append(words, fmt.Sprintf("container %s is changed", name))
		}
	}
	return strings.Join(words, ", ")
}

// injectedContainer is a container that admission has put into a pod. kind is its list.
type injectedContainer struct {
	corev1.Container
	kind string
}

// injectedInto returns the containers and init containers of a pod that a template does not
// have, by their names.
func injectedInto(pod *corev1.Pod, template *Template) map[string]injectedContainer {
	own := sets.New(names(template.containers).names...).Insert(names(template.initContainers).names...)
	found := map[string]injectedContainer{}
	for kind, list := range map[string][]corev1.Container{kindInitContainers: pod.Spec.InitContainers, kindContainers: pod.Spec.Containers} {
		for _, c := range list {
			if !own.Has(c.Name) {
				found[c.Name] = injectedContainer{c, kind}
			}
		}
	}
	return found
}
