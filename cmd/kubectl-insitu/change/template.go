// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// container is a container of a template, whose fields may be changed by it.
type container struct {
	name   string
	fields map[string]any
	// runsOnce: it is an init container that ends before the others start.
	runsOnce bool
}

// containers returns the containers of the template and, after them, the init containers
// with the sidecars among them.
func (w *Workload) containers() []container {
	spec, _, _ := unstructured.NestedFieldNoCopy(w.Object, "spec", "template", "spec")
	fields, _ := spec.(map[string]any)
	var found []container
	for _, list := range []string{"containers", "initContainers"} {
		items, _ := fields[list].([]any)
		for _, item := range items {
			c, _ := item.(map[string]any)
			name, _ := c["name"].(string)
			isSidecar := c["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways)
			found = append(found, container{name, c, list == "initContainers" && !isSidecar})
		}
	}
	return found
}

// containerNames returns the names of containers, for an error that says what is accepted.
func containerNames(containers []container) string {
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// errNoContainer says that a template has no container of a name.
func (w *Workload) errNoContainer(name string) error {
	return fmt.Errorf("found container %q: accepted are %s", name, containerNames(w.containers()))
}

// setTemplateAnnotation sets an annotation of the template.
func (w *Workload) setTemplateAnnotation(key, value string) error {
	return unstructured.SetNestedField(w.Object, value, "spec", "template", "metadata", "annotations", key)
}

// setAnnotation sets an annotation of the workload; the empty value takes it away.
func (w *Workload) setAnnotation(key, value string) {
	annotations := w.GetAnnotations()
	if value == "" {
		if _, ok := annotations[key]; !ok {
			return
		}
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	w.SetAnnotations(annotations)
}
