// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// asked are the annotations that ask for restarts.
type asked map[string]string

// restartedAt is the annotation that kubectl rollout restart writes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// asksForRestart reports whether an annotation asks for the restart of containers.
func asksForRestart(key string) bool {
	return key == restartedAt || strings.HasPrefix(key, appsv1beta1.RestartAnnotationPrefix)
}

// restartsAsked returns what asks for restarts in a pod, or in a template.
func restartsAsked(annotations map[string]string) asked {
	found := asked(maps.Clone(annotations))
	maps.DeleteFunc(found, func(key, _ string) bool { return !asksForRestart(key) })
	return found
}

// hasAll reports whether everything is there that is wanted, with the same values.
func (a asked) hasAll(wanted asked) bool {
	for key, value := range wanted {
		if found, ok := a[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// whatWasNotRestarted says which containers of a pod at rest were not started since their
// template asks for it, and whether the pod says what that asks.
func (w *World) whatWasNotRestarted(pod *corev1.Pod, template *corev1.PodTemplateSpec) []string {
	wanted, words := restartsAsked(template.Annotations), []string(nil)
	if found := restartsAsked(pod.Annotations); !maps.Equal(found, wanted) {
		words = append(words, fmt.Sprintf("it has the annotations %v instead of %v", found, wanted))
	}
	worker := w.worker(pod)
	if worker == nil {
		return words // no node has it yet
	}
	running := worker.running
	for _, name := range slices.Sorted(maps.Keys(running)) {
		for _, key := range []string{restartedAt, appsv1beta1.RestartAnnotationPrefix + name} {
			if value, ok := wanted[key]; ok && name != injected && running[name].asked[key] != value {
				words = append(words, fmt.Sprintf("container %s was not restarted since %s=%s", name, key, value))
			}
		}
	}
	return words
}
