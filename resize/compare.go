// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubectl/pkg/util/qos"
)

// Wish is what is wanted of the amounts of a pod.
type Wish struct {
	// From are the amounts in the template that the pod was made from, To those in
	// the template that it shall be like.
	From, To Amounts
	// Derived are the fields in To that the template leaves to the API server, see
	// Derived. Of a live pod, they follow what its own containers have.
	Derived sets.Set[Field]
	// Begun are the fields that the operator wrote last, see Written, or is still to
	// write. Where such a one is not as To says, a change is to be finished, or to be
	// taken back.
	Begun sets.Set[Field]
	// Asked are amounts that the operator asked for, and Answered those that the API
	// server stored in their place: admission rewrote them. Where To is what was
	// asked for, what was stored is left as it is.
	Asked, Answered Amounts
	// Enforce is true when fields that another client changed are set back.
	Enforce bool
}

// RefusalReason says why the API server would never accept a change.
type RefusalReason string

const (
	// Removed means that an amount would have to be removed, which pods/resize does
	// not allow.
	Removed RefusalReason = "ResizeRemoved"
	// OtherQOSClass means that the pod would be of another QoS class.
	OtherQOSClass RefusalReason = "ResizeQOSClass"
	// NodeUnsupported means that the kubelet reports no sizes of running containers,
	// so that the server refuses to resize its pods.
	NodeUnsupported RefusalReason = "ResizeNodeUnsupported"
)

// Refusal says why the amounts of a pod cannot be changed as wished.
type Refusal struct {
	Reason RefusalReason
	// Field is the field that it is about; empty if it is about the pod.
	Field string
	// Message says it in words.
	Message string
}

// Compare tells how the amounts of a live pod become what is wished. What the
// templates do not name, or name alike, is left alone, whatever it is.
func Compare(pod *corev1.Pod, wish Wish) (Change, *Refusal) {
	live := AmountsOf(&pod.Spec)
	var change Change
	for _, field := range union(wish.From, wish.To) {
		size, wanted := wish.To[field]
		current, there := live[field]
		switch {
		case !wanted && there:
			return nil, removed(field)
		case !wanted, there && current.Cmp(size) == 0, wish.Derived.Has(field), !wish.concerns(field, size, live):
			continue
		}
		change = append(change, newDelta(pod, field, current, there, size))
	}
	change = withCounterparts(pod, wish, live, change)
	derived := wish.derivedIn(change.Amounts().in(&pod.Spec))
	for _, field := range union(live, nil) {
		_, wanted := wish.To[field]
		_, follows := derived[field]
		if !wanted && !follows && wish.Begun.Has(field) {
			return nil, removed(field)
		}
	}
	change, refused := withDerived(pod, wish, live, change, derived)
	if refused != nil {
		return nil, refused
	}
	if len(change) == 0 {
		return nil, nil
	}
	return change, refuse(pod, change)
}

// withCounterparts adds to a change the requests that others have raised above a limit
// that it lowers, and the limits that others have lowered below a request that it raises:
// the API server lets no request be above its limit. They become what the template says
// or, if it says nothing, the same as the other.
func withCounterparts(pod *corev1.Pod, wish Wish, live Amounts, change Change) Change {
	all := change
	for _, delta := range change {
		counterpart, changed := delta.Field, quantity(delta.To)
		counterpart.Limit = !delta.Limit
		isApart := func(size resource.Quantity) bool {
			request, limit := size, changed
			if counterpart.Limit {
				request, limit = changed, size
			}
			return request.Cmp(limit) > 0
		}
		current, there := live[counterpart]
		if !there || !isApart(current) || slices.ContainsFunc(change, func(d Delta) bool { return d.Field == counterpart }) {
			continue
		}
		size, ok := wish.To[counterpart]
		if !ok {
			size = changed
		}
		if isApart(size) {
			continue // in the template as well
		}
		all = append(all, newDelta(pod, counterpart, current, true, size))
	}
	slices.SortFunc(all, func(a, b Delta) int { return compareFields(a.Field, b.Field) })
	return all
}

// concerns reports whether a field that To names is to be of a size.
func (w Wish) concerns(field Field, size resource.Quantity, live Amounts) bool {
	if answered, ok := w.Answered[field]; ok && w.Asked.Is(field, size) && live.Is(field, answered) {
		return false
	}
	before, existed := w.From[field]
	if !existed || before.Cmp(w.To[field]) != 0 {
		return true
	}
	return w.Enforce || w.Begun.Has(field)
}

func newDelta(pod *corev1.Pod, field Field, current resource.Quantity, there bool, size resource.Quantity) Delta {
	delta := Delta{Field: field, To: size.String(), Restarts: RestartsFor(pod, field)}
	if !there {
		return delta
	}
	delta.From = current.String()
	return delta.comparedWithNode(pod)
}

// RestartsFor reports whether the container that a field belongs to is restarted when
// the field changes.
func RestartsFor(pod *corev1.Pod, field Field) bool {
	container := containerOf(&pod.Spec, field)
	return container != nil && slices.ContainsFunc(container.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.ResourceName == field.Resource && p.RestartPolicy == corev1.RestartContainer
	})
}

func removed(field Field) *Refusal {
	return &Refusal{
		Reason: Removed, Field: field.String(),
		Message: field.String() + " was removed, and the API server lets no live pod lose a request or a limit",
	}
}

// refuse says why the server would not accept a change; nil if nothing is known
// against it.
func refuse(pod *corev1.Pod, change Change) *Refusal {
	if before, after := qos.GetPodQOS(pod), qos.ComputePodQOS(change.Applied(pod)); before != after {
		return &Refusal{
			Reason: OtherQOSClass, Field: change[0].Field.String(),
			Message: fmt.Sprintf("%s would make the pod %s instead of %s: Pod QOS Class may not change as a result of resizing",
				change, after, before),
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running != nil && status.Resources == nil {
			return &Refusal{
				Reason: NodeUnsupported,
				Message: fmt.Sprintf("the kubelet on %s reports no sizes of container %s: Pod running on node without support for resize",
					pod.Spec.NodeName, status.Name),
			}
		}
		if status.State.Running != nil {
			break
		}
	}
	return nil
}
