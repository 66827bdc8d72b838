// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Derived returns the fields of InTemplate that are about the pod itself, and that
// the template leaves to the API server. It derives them from all containers that a
// pod has, also from those that admission added.
func Derived(spec *corev1.PodSpec) sets.Set[Field] {
	fields := sets.New[Field]()
	named := AmountsOf(spec)
	for field := range InTemplate(spec) {
		if _, ok := named[field]; !ok && field.Container == "" {
			fields.Insert(field)
		}
	}
	return fields
}

// derivedIn returns the amounts of the pod itself that the API server would derive
// for a spec, if it had those only that the template names.
func (w Wish) derivedIn(spec *corev1.PodSpec) Amounts {
	if spec.Resources == nil {
		return nil
	}
	reduced := spec.DeepCopy()
	derived := Amounts{}
	for _, limit := range []bool{false, true} {
		for _, name := range resizable {
			field := Field{Limit: limit, Resource: name}
			if _, wanted := w.To[field]; wanted && !w.Derived.Has(field) {
				continue
			}
			derived[field] = resource.Quantity{}
			if limit {
				delete(reduced.Resources.Limits, name)
			} else {
				delete(reduced.Resources.Requests, name)
			}
		}
	}
	completePod(reduced)
	for field := range derived {
		size, ok := amountOf(reduced, field)
		derived[field] = size
		if !ok {
			delete(derived, field)
		}
	}
	return derived
}

// withDerived makes what is derived follow a change of the containers. What the pod
// does not have of it, the server adds.
func withDerived(pod *corev1.Pod, wish Wish, live Amounts, change Change, derived Amounts) (Change, *Refusal) {
	isDerived := func(d Delta) bool { return wish.Derived.Has(d.Field) }
	all := slices.DeleteFunc(slices.Clone(change), isDerived)
	for _, field := range union(wish.To, nil) {
		current, there := live[field]
		if !there || !wish.Derived.Has(field) {
			continue
		}
		size, ok := derived[field]
		raised := slices.ContainsFunc(change, func(d Delta) bool { return d.Field == field })
		switch {
		case !raised && !wish.concerns(field, size, live):
		case !ok:
			return nil, removed(field)
		case current.Cmp(size) != 0 && !wish.isLeft(pod, field, current, change):
			all = append(all, newDelta(pod, field, current, true, size))
		}
	}
	slices.SortFunc(all, func(a, b Delta) int { return compareFields(a.Field, b.Field) })
	return all, nil
}

// isLeft reports whether a derived amount is as it would be if no other client had
// changed containers of the pod, which nothing else gives a reason to look at.
func (w Wish) isLeft(pod *corev1.Pod, field Field, current resource.Quantity, change Change) bool {
	return !slices.ContainsFunc(change, func(d Delta) bool { return d.Resource == field.Resource }) &&
		w.derivedIn(w.To.in(&pod.Spec)).Is(field, current)
}
