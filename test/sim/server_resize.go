// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/qos"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	statusSubresource = "status"
	resizeSubresource = "resize"
)

// sizeAdmission is what a server knows of the sizes of pods.
type sizeAdmission struct {
	// nodes holds the CPU that pods may have on a node, in thousandths. Of a node
	// that is not in it, the server judges nothing: the kubelet does.
	nodes map[string]int64
	// refuse, if set, refuses resizes as a quota or a LimitRange does.
	refuse func(after *corev1.Pod) error
	// owners tells who has set a number last through pods/resize, and when.
	owners map[types.UID]map[sizeKey]owner
}

// owner is who has set a number last.
type owner struct {
	name string
	at   metav1.Time
}

// operatorManager is the operator's name among the owners of fields.
const operatorManager = "insitu"

// defaultSizes fills in what the server fills in.
func defaultSizes(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			for name, value := range c.Resources.Limits {
				if _, ok := c.Resources.Requests[name]; !ok {
					if c.Resources.Requests == nil {
						c.Resources.Requests = corev1.ResourceList{}
					}
					c.Resources.Requests[name] = value
				}
			}
		}
	}
	defaultWhole(spec)
}

// defaultWhole fills in what the server fills in of the pod as a whole: what the
// containers request in all and, if all have a limit, these in all.
func defaultWhole(spec *corev1.PodSpec) {
	if spec.Resources == nil {
		return
	}
	all := slices.Concat(spec.InitContainers, spec.Containers)
	whole := spec.Resources
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		var requests, limits resource.Quantity
		limited, requested := true, false
		for i := range all {
			request, has := all[i].Resources.Requests[name]
			limit, bound := all[i].Resources.Limits[name]
			requests.Add(request)
			limits.Add(limit)
			limited, requested = limited && bound, requested || has
		}
		if _, has := whole.Requests[name]; !has && requested {
			whole.Requests[name] = requests
		}
		if request, has := whole.Requests[name]; has && limited && request.Cmp(limits) > 0 {
			limits = request
		}
		if _, has := whole.Limits[name]; !has && limited {
			if whole.Limits == nil {
				whole.Limits = corev1.ResourceList{}
			}
			whole.Limits[name] = limits
		}
	}
}

// keepAllButSizes makes a write to pods/resize leave alone all but the resources of
// containers and of the pod.
func keepAllButSizes(held, obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	wanted := pod.DeepCopy()
	held.(*corev1.Pod).DeepCopyInto(pod) //nolint:forcetypeassert // the type of obj
	pod.Spec.Resources = wanted.Spec.Resources
	for _, pair := range [][2][]corev1.Container{
		{pod.Spec.Containers, wanted.Spec.Containers}, {pod.Spec.InitContainers, wanted.Spec.InitContainers},
	} {
		for i := range pair[0] {
			for _, c := range pair[1] {
				if c.Name == pair[0][i].Name {
					pair[0][i].Resources = c.Resources
				}
			}
		}
	}
	defaultSizes(&pod.Spec)
}

// validateResize refuses what no resize may do, and what is refused now, with the
// codes and in the words of the real server.
func (s *server) validateResize(before, pod *corev1.Pod) error {
	was, is := sizesOf(&before.Spec), sizesOf(&pod.Spec)
	var refusals field.ErrorList
	spec := field.NewPath("spec")
	if qos.GetPodQOS(before) != qos.ComputePodQOS(pod) {
		refusals = append(refusals, field.Invalid(spec, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing"))
	}
	values := is.values()
	for _, key := range was.changes(is) {
		if _, ok := values[key]; !ok {
			refusals = append(refusals, field.Forbidden(pathOf(pod, key.container).Child("resources", key.list), "resource "+key.list+" cannot be removed"))
		}
		if key.resource != corev1.ResourceCPU && key.resource != corev1.ResourceMemory {
			refusals = append(refusals, field.Forbidden(spec, "only cpu and memory resources are mutable"))
		}
	}
	for key, limit := range values {
		request := values[sizeKey{key.container, "requests", key.resource}]
		if key.list == "limits" && request.Cmp(limit) > 0 {
			refusals = append(refusals, field.Invalid(pathOf(pod, key.container).Child("resources", "requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", key.resource, limit.String())))
		}
	}
	slices.SortStableFunc(refusals, func(a, b *field.Error) int { return strings.Compare(a.Detail, b.Detail) })
	if len(refusals) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, refusals)
	}
	if pod.Generation == before.Generation {
		return nil
	}
	if err := s.checkAllocatable(pod, is); err != nil {
		return err
	}
	if s.sizes.refuse != nil {
		return s.sizes.refuse(pod)
	}
	return nil
}

// checkAllocatable refuses what the node can never hold.
func (s *server) checkAllocatable(pod *corev1.Pod, wanted sizes) error {
	allocatable, known := s.sizes.nodes[pod.Spec.NodeName]
	if !known || wanted.cpu() <= allocatable {
		return nil
	}
	refusal := apierrors.NewForbidden(resourceOf("Pod"), pod.Name, fmt.Errorf(
		"node didn't have enough allocatable resources: cpu, requested: %d, allocatable: %d", wanted.cpu(), allocatable))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NodeCapacity"})
	return refusal
}

// errQuota is how a quota refuses.
var errQuota = errors.New("exceeded quota: compute, requested: requests.cpu=50m, used: requests.cpu=1, limited: requests.cpu=1")

// refusesAbove refuses pods that are to have more than an amount of CPU.
func refusesAbove(milliCPU int64) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if sizesOf(&pod.Spec).cpu() > milliCPU {
			return apierrors.NewForbidden(resourceOf("Pod"), pod.Name, errQuota)
		}
		return nil
	}
}

// pathOf returns where a container is in the spec of a pod.
func pathOf(pod *corev1.Pod, container string) *field.Path {
	for list, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		if i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == container }); i >= 0 {
			return field.NewPath("spec", list).Index(i)
		}
	}
	return field.NewPath("spec")
}

// own notes in managedFields who has set which number to another value last.
func (s *server) own(held, obj client.Object, manager string) {
	before, pod := held.(*corev1.Pod), obj.(*corev1.Pod) //nolint:forcetypeassert // only pods have sizes
	owners := maps.Clone(s.sizes.owners[pod.UID])
	if owners == nil {
		owners = map[sizeKey]owner{}
	}
	for _, key := range sizesOf(&before.Spec).changes(sizesOf(&pod.Spec)) {
		owners[key] = owner{manager, metav1.NewTime(s.clock.Now())}
	}
	if s.sizes.owners == nil {
		s.sizes.owners = map[types.UID]map[sizeKey]owner{}
	}
	s.sizes.owners[pod.UID] = owners
	keys, last := map[string][]sizeKey{}, map[string]metav1.Time{}
	for key, o := range owners {
		keys[o.name] = append(keys[o.name], key)
		if at := last[o.name]; at.Before(&o.at) {
			last[o.name] = o.at
		}
	}
	pod.ManagedFields = nil
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		at := last[name]
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: fieldsOf(pod, keys[name]), Subresource: resizeSubresource,
		})
	}
}

// isOwnWork reports whether the operator has set one of the numbers of a pod last.
func (w *World) isOwnWork(pod *corev1.Pod, keys []sizeKey) bool {
	return slices.ContainsFunc(keys, func(key sizeKey) bool { return w.server.sizes.owners[pod.UID][key].name == operatorManager })
}

// fieldsOf writes numbers as managedFields does.
func fieldsOf(pod *corev1.Pod, keys []sizeKey) *metav1.FieldsV1 {
	root := map[string]any{}
	for _, key := range keys {
		path := []string{"f:spec"}
		if key.container != "" {
			list := "f:containers"
			if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == key.container }) {
				list = "f:initContainers"
			}
			path = append(path, list, fmt.Sprintf("k:{\"name\":%q}", key.container))
		}
		at := root
		for _, step := range append(path, "f:resources", "f:"+key.list, "f:"+string(key.resource)) {
			if at[step] == nil {
				at[step] = map[string]any{}
			}
			at = at[step].(map[string]any) //nolint:forcetypeassert // nothing else is in it
		}
	}
	raw, _ := json.Marshal(root) // texts marshal
	return metav1.NewFieldsV1(string(raw))
}
