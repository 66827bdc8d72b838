// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// sizeDisturbances may happen where there are resources.
var sizeDisturbances = []disturbance{
	{"resize", func(w *World) { w.ask(pick(w.choices, resizeRevisions)) }, 6},
	{"node filled", (*World).fillNode, 4},
	{"node emptied", (*World).emptyNode, 3},
	{"quota", (*World).toggleQuota, 2},
	{"resized by others", (*World).resizeByOthers, 4},
	{"resize policy", (*World).changeResizePolicy, 1},
}

// boundNodes gives nodes the bounds of the settings.
func (w *World) boundNodes() {
	if w.settings.resizes.cpu == 0 {
		return
	}
	if w.settings.resizes.early {
		w.server.sizes.nodes = map[string]int64{}
	}
	for _, node := range w.nodes {
		node.cpu = w.settings.resizes.cpu
		if w.settings.resizes.early {
			w.server.sizes.nodes[node.node] = node.cpu
		}
	}
}

// fillNode lets pods of others leave little on a node.
func (w *World) fillNode() {
	node := pick(w.choices, w.nodes)
	node.others = 0
	spare := pick(w.choices, []int64{0, 30, 100, 300})
	node.others = max(node.room(&corev1.Pod{}, true)-spare, 0)
	w.say("others leave %dm CPU on %s", spare, node.node)
}

// emptyNode removes the pods of others from a node.
func (w *World) emptyNode() {
	node := pick(w.choices, w.nodes)
	w.say("others leave %s", node.node)
	node.others = 0
}

// toggleQuota lets the server refuse larger sizes, or no more.
func (w *World) toggleQuota() {
	if w.server.sizes.refuse != nil {
		w.say("quota: refuses nothing any more")
		w.server.sizes.refuse = nil
		return
	}
	limit := pick(w.choices, []int64{0, 200, 300})
	w.say("quota: refuses pods above %dm CPU", limit)
	w.server.sizes.refuse = refusesAbove(limit)
}

// resizeByOthers lets an autoscaler change the size of a pod.
func (w *World) resizeByOthers() {
	pod := w.anyPod()
	if pod == nil {
		return
	}
	key := sizeKey{
		pod.Spec.Containers[w.choices.intN(2)].Name, "requests", pick(w.choices, []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}),
	}
	size := map[corev1.ResourceName][]string{corev1.ResourceCPU: {"70m", "130m"}, corev1.ResourceMemory: {"40Mi", "56Mi"}}[key.resource]
	w.resizeAs("autoscaler", pod, key.container, key.resource, pick(w.choices, size))
}

// resizeAs lets another client change what a container has of a resource.
func (w *World) resizeAs(manager string, pod *corev1.Pod, container string, name corev1.ResourceName, size string) {
	own, there := sizesOf(&pod.Spec)[container]
	if !there {
		return
	}
	c := corev1.Container{Resources: *own.DeepCopy()}
	setSize(&c, name, size)
	body, _ := json.Marshal(map[string]any{"spec": map[string]any{ // texts marshal
		"containers": []any{map[string]any{"name": container, "resources": c.Resources}},
	}})
	_, err := w.server.patch(patchRequest{
		key: objectKey{"Pod", pod.Name}, kind: types.StrategicMergePatchType, body: body, subresource: resizeSubresource, manager: manager,
	})
	w.say("%s: %s of %s in %s becomes %s: %v", manager, name, container, pod.Name, size, err)
}

func (w *World) changeResizePolicy() {
	policy := chosenResizePolicy(w.choices)
	w.say("user: resize %s", w.settings.resizes)
	w.settings.resizes.policy = policy
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) {
		if r.InPlaceUpdateStrategy != nil {
			r.InPlaceUpdateStrategy.Resize = policy.DeepCopy()
		}
	})
}

// makeRoom ends what stands in the way of resizes.
func (w *World) makeRoom() {
	w.server.sizes.refuse = nil
	for _, node := range w.nodes {
		node.others = 0
	}
}
