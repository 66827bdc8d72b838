// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"
)

// Delta is the change of one amount.
type Delta struct {
	Field
	// From and To are the sizes as the API writes them; From is empty if there was
	// none.
	From, To string
	// Restarts is true when the container is restarted for it, as its resizePolicy
	// says.
	Restarts bool
	// pending is true when the node has made no more than To so far: what goes back
	// to it was asked for, and never there.
	pending bool
	// ungranted is true when the node has not granted From, and To is less. Where From is
	// to be taken back before anything else, held is what the node has: see takeBackFirst.
	ungranted bool
	held      string
}

// String says the change in words: "memory limit of main: 64Mi to 96Mi".
func (d Delta) String() string {
	from := d.From
	if from == "" {
		from = "none"
	}
	return fmt.Sprintf("%s: %s to %s", d.inWords(), from, d.To)
}

// grows reports whether the pod gets more by it, or at least no less. A limit where
// there was none takes something away.
func (d Delta) grows() bool {
	if d.From == "" {
		return !d.Limit
	}
	if d.pending {
		return true
	}
	to, from := quantity(d.To), quantity(d.From)
	return to.Cmp(from) > 0
}

// Change is what separates the amounts of a live pod from those that it shall
// have, in the order of the fields' names.
type Change []Delta

// String says the change in words.
func (c Change) String() string {
	words := make([]string, 0, len(c))
	for _, delta := range c {
		words = append(words, delta.String())
	}
	return strings.Join(words, ", ")
}

// Restarted returns the names of the containers that are restarted for the change.
func (c Change) Restarted() []string {
	var names []string
	for _, delta := range c {
		if delta.Restarts && !slices.Contains(names, delta.Container) {
			names = append(names, delta.Container)
		}
	}
	return names
}

// Restarts reports whether a container is restarted for the change.
func (c Change) Restarts() bool {
	return slices.ContainsFunc(c, func(d Delta) bool { return d.Restarts })
}

// Amounts returns the sizes that the change leads to.
func (c Change) Amounts() Amounts {
	amounts := Amounts{}
	for _, delta := range c {
		amounts[delta.Field] = quantity(delta.To)
	}
	return amounts
}

// Before returns the sizes from before the change, where there were some. A field that
// changes in two steps has the size from before the first.
func (c Change) Before() Amounts {
	amounts := Amounts{}
	for _, delta := range slices.Backward(c) {
		if delta.From != "" {
			amounts[delta.Field] = quantity(delta.From)
		}
	}
	return amounts
}

// Split tells when the parts of a change are made, if containers of the pod are
// given another image, too, some of them now and others later: what grows, before the
// pod is taken out of service for that, so that the new image never runs with less than
// it was given, and so that no pod is out of service while it waits for room; what
// restarts containers, while it is out of service; and what shrinks, when it
// serves again, so that the old image never does. A memory limit of a container that
// gets another image is lowered together with that: the kubelet lowers that of no
// container which runs for the second time, since it asks for the use of the first,
// too, but starts each with what it is to have. What goes together with an image that
// comes later is in the last part: see Together.
//
// A size that the node has not granted holds up all others of the pod. Where the pod is
// to have less, it goes back first to what the node has, so that nothing waits for room
// which is not asked for any more.
//
// Where the API server would refuse what the pod is in between, nothing is left for
// later; nor where something would wait for a size that is not granted, and that cannot
// be taken back while the pod serves: the node may have granted it just now, and restarts
// the container once more.
func (c Change) Split(pod *corev1.Pod, now, later []string) (before, with, after Change) {
	var withLater Change
	for _, delta := range c.takeBackFirst() {
		together := delta.Restarts || !delta.grows() && goesWithImage(pod, delta.Field)
		switch {
		case together && slices.Contains(later, delta.Container):
			withLater = append(withLater, delta)
		case delta.Restarts, together && slices.Contains(now, delta.Container):
			with = append(with, delta)
		case delta.grows():
			before = append(before, delta)
		default:
			after = append(after, delta)
		}
	}
	if len(before) > 0 && c.restartsUngranted() {
		return nil, c, nil
	}
	state := pod
	for _, part := range []Change{before, with, withLater} {
		next := part.Applied(state)
		if !isResizable(state, next) {
			return nil, c, nil
		}
		state = next
	}
	return before, with, append(withLater, after...)
}

// Together returns those of the amounts that Split left for later which are changed
// together with the images of containers.
func (a Amounts) Together(pod *corev1.Pod, containers []string) Amounts {
	together := Amounts{}
	for field, size := range a {
		if slices.Contains(containers, field.Container) && goesWithImage(pod, field) {
			together[field] = size
		}
	}
	return together
}

// goesWithImage reports whether an amount of a container, if it does not grow in service,
// is changed together with its image.
func goesWithImage(pod *corev1.Pod, field Field) bool {
	return field.Resource == corev1.ResourceMemory || RestartsFor(pod, field)
}

// isResizable reports whether the API server lets a pod become what it is after a
// resize: of the same QoS class, and with room in the pod for all its containers.
func isResizable(before, after *corev1.Pod) bool {
	if qos.GetPodQOS(before) != qos.ComputePodQOS(after) {
		return false
	}
	amounts := AmountsOf(&after.Spec)
	sums := resourcehelper.AggregateContainerRequests(after, resourcehelper.PodResourcesOptions{})
	for _, name := range resizable {
		sum := sums[name]
		if room, ok := amounts[Field{Resource: name}]; ok && sum.Cmp(room) > 0 {
			return false
		}
		room, limited := amounts[Field{Limit: true, Resource: name}]
		for i := range after.Spec.Containers {
			if limit, ok := after.Spec.Containers[i].Resources.Limits[name]; ok && limited && limit.Cmp(room) > 0 {
				return false
			}
		}
	}
	return true
}

// Applied returns a pod with the amounts that the change leads to, and nothing
// that other decisions read.
func (c Change) Applied(pod *corev1.Pod) *corev1.Pod {
	changed := &corev1.Pod{Spec: *c.Amounts().in(&pod.Spec)}
	completePod(&changed.Spec)
	return changed
}

// in returns a spec with these amounts.
func (a Amounts) in(spec *corev1.PodSpec) *corev1.PodSpec {
	changed := spec.DeepCopy()
	for field, size := range a {
		set(changed, field, size)
	}
	return changed
}

func set(spec *corev1.PodSpec, field Field, size resource.Quantity) {
	if resources := requirements(spec, field); resources != nil {
		put(field.in(resources), field.Resource, size)
	}
}

// requirements returns where a spec holds the amounts of a container or, for the
// empty name, of the pod; nil if it has no such container.
func requirements(spec *corev1.PodSpec, field Field) *corev1.ResourceRequirements {
	if field.Container == "" {
		if spec.Resources == nil {
			spec.Resources = &corev1.ResourceRequirements{}
		}
		return spec.Resources
	}
	if container := containerOf(spec, field); container != nil {
		return &container.Resources
	}
	return nil
}

func containerOf(spec *corev1.PodSpec, field Field) *corev1.Container {
	containers := spec.Containers
	if field.Sidecar {
		containers = spec.InitContainers
	}
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == field.Container })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// Patch returns the strategic merge patch of pods/resize that makes the change and
// touches nothing else. The server refuses it if the pod is no longer the one that
// it was decided on.
func (c Change) Patch(pod *corev1.Pod) ([]byte, error) {
	body := resizePatch{}
	body.Metadata.UID, body.Metadata.ResourceVersion = string(pod.UID), pod.ResourceVersion
	requirements := c.Amounts().Requirements()
	if resources, ok := requirements[""]; ok {
		body.Spec.Resources = &resources
	}
	body.Spec.InitContainers = patchesOf(pod.Spec.InitContainers, requirements)
	body.Spec.Containers = patchesOf(pod.Spec.Containers, requirements)
	return json.Marshal(body)
}

// patchesOf returns patches of those containers that have requirements. They keep the
// order of the containers: a merge gives the list the order of the patch, and the API
// server lets no pod change that.
func patchesOf(containers []corev1.Container, requirements map[string]corev1.ResourceRequirements) []containerPatch {
	var patches []containerPatch
	for i := range containers {
		if resources, ok := requirements[containers[i].Name]; ok {
			patches = append(patches, containerPatch{Name: containers[i].Name, Resources: resources})
		}
	}
	return patches
}

type resizePatch struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Resources      *corev1.ResourceRequirements `json:"resources,omitempty"`
		InitContainers []containerPatch             `json:"initContainers,omitempty"`
		Containers     []containerPatch             `json:"containers,omitempty"`
	} `json:"spec"`
}

type containerPatch struct {
	Name      string                      `json:"name"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// quantity reads a size that was written by Quantity.String.
func quantity(text string) resource.Quantity {
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return size
}
