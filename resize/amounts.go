// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// Field names one amount in the spec of a pod.
type Field struct {
	// Container is the name of a container or native sidecar; empty for the pod
	// itself, whose amounts are in spec.resources.
	Container string
	// Sidecar is true for a native sidecar, which is in spec.initContainers.
	Sidecar bool
	// Limit is true for a limit, false for a request.
	Limit bool
	// Resource is cpu or memory.
	Resource corev1.ResourceName
}

// String names the field as it is written in a template:
// spec.containers[main].resources.limits.memory.
func (f Field) String() string {
	path := "spec.resources"
	switch {
	case f.Sidecar:
		path = fmt.Sprintf("spec.initContainers[%s].resources", f.Container)
	case f.Container != "":
		path = fmt.Sprintf("spec.containers[%s].resources", f.Container)
	}
	return path + "." + f.list() + "." + string(f.Resource)
}

func (f Field) list() string {
	if f.Limit {
		return "limits"
	}
	return "requests"
}

// inWords names the field for people: "memory limit of main".
func (f Field) inWords() string {
	what := "request"
	if f.Limit {
		what = "limit"
	}
	of := f.Container
	if of == "" {
		of = "the pod"
	}
	return fmt.Sprintf("%s %s of %s", f.Resource, what, of)
}

// compareFields orders fields as they are written: those of containers, of native
// sidecars, and of the pod itself.
func compareFields(a, b Field) int {
	return cmp.Or(
		cmp.Compare(a.rank(), b.rank()),
		cmp.Compare(a.Container, b.Container),
		cmp.Compare(a.list(), b.list()),
		cmp.Compare(a.Resource, b.Resource),
	)
}

func (f Field) rank() int {
	switch {
	case f.Container == "":
		return 2
	case f.Sidecar:
		return 1
	default:
		return 0
	}
}

// Amounts are sizes, by the field that holds them.
type Amounts map[Field]resource.Quantity

// resizable are the resources that a live pod can change.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// AmountsOf returns what a spec says of the resources that can be changed on a
// live pod: those of its containers, its native sidecars, and the pod itself.
func AmountsOf(spec *corev1.PodSpec) Amounts {
	amounts := Amounts{}
	amounts.add(Field{}, ptr.Deref(spec.Resources, corev1.ResourceRequirements{}))
	for i := range spec.Containers {
		amounts.add(Field{Container: spec.Containers[i].Name}, spec.Containers[i].Resources)
	}
	for i := range spec.InitContainers {
		if container := &spec.InitContainers[i]; isSidecar(container) {
			amounts.add(Field{Container: container.Name, Sidecar: true}, container.Resources)
		}
	}
	return amounts
}

// InTemplate returns what pods made from a template have, as far as the template
// decides it: the API server completes what is said in part. What it makes of
// containers that admission adds is not known here.
func InTemplate(spec *corev1.PodSpec) Amounts {
	completed := spec.DeepCopy()
	for i := range completed.Containers {
		addRequests(&completed.Containers[i].Resources)
	}
	for i := range completed.InitContainers {
		addRequests(&completed.InitContainers[i].Resources)
	}
	completePod(completed)
	return AmountsOf(completed)
}

// completePod adds the amounts of the pod itself that the API server adds, on
// pods/resize too, where one is given (KEP-2837): a request is the sum of what the
// containers request or, if none does, the limit; a limit is the sum of theirs, and
// not below the request, if all of them have one.
//
// Servers before 1.37 add no limits. One that is added for them binds nothing that
// the containers' own limits do not.
func completePod(spec *corev1.PodSpec) {
	pod := &corev1.Pod{Spec: *spec}
	if !resourcehelper.IsPodLevelResourcesSet(pod) {
		return
	}
	resources := spec.Resources
	requests := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range resizable {
		if sum, ok := requests[name]; ok {
			addMissing(&resources.Requests, name, sum)
		}
	}
	addRequests(resources)
	limits := resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range resizable {
		request, ok := resources.Requests[name]
		if !ok || !allLimited(spec, name) {
			continue
		}
		limit := limits[name]
		if request.Cmp(limit) > 0 {
			limit = request
		}
		addMissing(&resources.Limits, name, limit)
	}
}

// allLimited reports whether every container of a pod has a limit of a resource.
func allLimited(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	return !slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		_, limited := c.Resources.Limits[name]
		return !limited
	})
}

// addRequests makes limits the requests, too, where there are none.
func addRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		addMissing(&resources.Requests, name, limit)
	}
}

func addMissing(list *corev1.ResourceList, name corev1.ResourceName, size resource.Quantity) {
	if _, ok := (*list)[name]; !ok {
		put(list, name, size)
	}
}

func put(list *corev1.ResourceList, name corev1.ResourceName, size resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = size
}

// in returns the list of requirements that holds the field.
func (f Field) in(resources *corev1.ResourceRequirements) *corev1.ResourceList {
	if f.Limit {
		return &resources.Limits
	}
	return &resources.Requests
}

// Equal reports whether both name the same amounts of the same size.
func (a Amounts) Equal(other Amounts) bool {
	return maps.EqualFunc(a, other, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// FirstDifference returns the first field in which both differ, and whether there
// is one.
func (a Amounts) FirstDifference(other Amounts) (Field, bool) {
	for _, field := range union(a, other) {
		x, inA := a[field]
		y, inOther := other[field]
		if inA != inOther || x.Cmp(y) != 0 {
			return field, true
		}
	}
	return Field{}, false
}

// union returns the fields of both, in order.
func union(a, b Amounts) []Field {
	all := maps.Clone(a)
	if all == nil {
		all = Amounts{}
	}
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), compareFields)
}

// amountOf returns what a spec says of one field, as AmountsOf does of all.
func amountOf(spec *corev1.PodSpec, field Field) (resource.Quantity, bool) {
	resources := spec.Resources
	if field.Container != "" {
		container := containerOf(spec, field)
		if container == nil {
			return resource.Quantity{}, false
		}
		resources = &container.Resources
	}
	if resources == nil {
		return resource.Quantity{}, false
	}
	size, ok := (*field.in(resources))[field.Resource]
	return size, ok
}

// Holds reports whether a pod has, in all of some fields, the sizes that amounts
// name.
func (a Amounts) Holds(pod *corev1.Pod, fields sets.Set[Field]) bool {
	for field := range fields {
		size, there := amountOf(&pod.Spec, field)
		if wanted, ok := a[field]; there != ok || size.Cmp(wanted) != 0 {
			return false
		}
	}
	return true
}

// Fields returns the fields in order.
func (a Amounts) Fields() []Field {
	return union(a, nil)
}

// With returns the amounts of both, those of other where both name a field.
func (a Amounts) With(other Amounts) Amounts {
	merged := Amounts{}
	maps.Copy(merged, a)
	maps.Copy(merged, other)
	return merged
}

// Without returns the amounts of the fields that other does not have.
func (a Amounts) Without(other Amounts) Amounts {
	rest := maps.Clone(a)
	maps.DeleteFunc(rest, func(field Field, _ resource.Quantity) bool {
		_, drop := other[field]
		return drop
	})
	return rest
}

// Is reports whether a field has a size.
func (a Amounts) Is(field Field, size resource.Quantity) bool {
	found, ok := a[field]
	return ok && found.Cmp(size) == 0
}

func (a Amounts) add(field Field, resources corev1.ResourceRequirements) {
	for _, field.Limit = range []bool{false, true} {
		for _, field.Resource = range resizable {
			if size, ok := (*field.in(&resources))[field.Resource]; ok {
				a[field] = size
			}
		}
	}
}

// Requirements returns the amounts by container, as the API writes them; those of
// the pod itself under the empty name.
func (a Amounts) Requirements() map[string]corev1.ResourceRequirements {
	if len(a) == 0 {
		return nil
	}
	all := map[string]corev1.ResourceRequirements{}
	for field, size := range a {
		of := all[field.Container]
		put(field.in(&of), field.Resource, size)
		all[field.Container] = of
	}
	return all
}

// FromRequirements returns the amounts that a map by container names, for the
// containers that a pod has.
func FromRequirements(all map[string]corev1.ResourceRequirements, pod *corev1.Pod) Amounts {
	amounts := Amounts{}
	for name, requirements := range all {
		if field, ok := fieldOf(name, pod); ok {
			amounts.add(field, requirements)
		}
	}
	return amounts
}

// fieldOf returns a field with the container of a pod, and whether the pod has it.
func fieldOf(container string, pod *corev1.Pod) (Field, bool) {
	field := Field{Container: container}
	switch {
	case container == "":
		return field, true
	case slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container }):
		return field, true
	default:
		field.Sidecar = true
		return field, slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container && isSidecar(&c) })
	}
}

func isSidecar(container *corev1.Container) bool {
	return ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}
