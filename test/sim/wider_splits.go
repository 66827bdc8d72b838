// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// splitSizes are what an autoscaler gives to requests alone, or to limits alone; the last
// of each is what the first template says. A limit may be below what a later template
// requests.
var splitSizes = map[string]map[corev1.ResourceName][]string{
	"requests": {corev1.ResourceCPU: {"30m", "90m", "100m"}, corev1.ResourceMemory: {"24Mi", "90Mi", "64Mi"}},
	"limits":   {corev1.ResourceCPU: {"300m", "400m", "200m"}, corev1.ResourceMemory: {"256Mi", "80Mi", "128Mi"}},
}

// splitRevisions change the limit of a container, and leave its request, or the other way
// round.
var splitRevisions = []revision{
	{"more limit", func(t *corev1.PodTemplateSpec) { setNumber(t, "limits", "128Mi") }},
	{"more limit, request", func(t *corev1.PodTemplateSpec) {
		setNumber(t, "limits", "128Mi")
		setNumber(t, "requests", "96Mi")
	}},
}

func (s wider) splitRevisions() []revision {
	if !s.splits {
		return nil
	}
	return splitRevisions
}

// setNumber sets the memory that the first container of a template requests, or its
// limit, if it has one and is not limited to what it requests.
func setNumber(t *corev1.PodTemplateSpec, list, size string) {
	resources := t.Spec.Containers[0].Resources
	if _, isGuaranteed := resources.Limits[corev1.ResourceCPU]; isGuaranteed || resources.Limits == nil {
		return
	}
	map[string]corev1.ResourceList{"requests": resources.Requests, "limits": resources.Limits}[list][corev1.ResourceMemory] = resource.MustParse(size)
}

// splitSize lets an autoscaler change the request of a container and leave its limit, or
// the other way round.
func (w *World) splitSize() {
	if !w.settings.wider.splits || !w.settings.resizes.on {
		return
	}
	pod := w.anyPod()
	if pod == nil {
		return
	}
	key := sizeKey{
		pod.Spec.Containers[w.choices.intN(2)].Name, pick(w.choices, []string{"requests", "requests", "limits"}),
		pick(w.choices, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}),
	}
	w.setAs("autoscaler", pod, key, pick(w.choices, splitSizes[key.list][key.resource]))
}

// setAs lets a manager set one number of a pod, if the pod has it.
func (w *World) setAs(manager string, pod *corev1.Pod, key sizeKey, size string) {
	if _, has := sizesOf(&pod.Spec).values()[key]; !has {
		return
	}
	body, _ := json.Marshal(map[string]any{"spec": map[string]any{ // texts marshal
		"containers": []any{map[string]any{"name": key.container, "resources": map[string]any{key.list: map[string]any{string(key.resource): size}}}},
	}})
	_, err := w.server.patch(patchRequest{
		key: objectKey{"Pod", pod.Name}, kind: types.StrategicMergePatchType, body: body, subresource: resizeSubresource, manager: manager,
	})
	w.say("%s: %v in %s becomes %s: %v", manager, key, pod.Name, size, err)
}
