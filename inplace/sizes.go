// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/resize"
)

// addResizes adds to a change the amounts that separate the pod from a template.
func (o *observed) addResizes(change *Change, from, to *Template) *Refusal {
	begun := o.own.Union(sets.KeySet(o.due()))
	if len(begun) == 0 && from.amounts.Equal(to.amounts) {
		return nil // as nearly always
	}
	all, refused := resize.Compare(o.pod, o.answered(resize.Wish{
		From: from.amounts, To: to.amounts, Derived: to.derived, Begun: begun,
	}))
	if refused != nil {
		return resizeRefusal(refused)
	}
	change.Resize = all
	if len(change.Images) > 0 && o.pod.Status.Phase == corev1.PodRunning {
		// One that has not run yet is not served by an order; it may have no room
		// on any node before it shrinks.
		change.Grow, change.Resize, change.Shrink = all.Split(o.pod, containersOf(change.Images), containersOf(change.Later))
	}
	return nil
}

// due returns the amounts that the record of the pod leaves for when it serves
// again.
func (o *observed) due() resize.Amounts {
	if o.state.Revision != RevisionOf(o.pod) {
		return nil
	}
	return resize.FromRequirements(o.state.NextContainerResources, o.pod)
}

// answered adds to a wish what the API server made of earlier ones.
func (o *observed) answered(wish resize.Wish) resize.Wish {
	if len(o.state.Resized) > 0 {
		wish.Asked = resize.FromRequirements(o.state.ResizedFrom, o.pod)
		wish.Answered = resize.FromRequirements(o.state.Resized, o.pod)
	}
	return wish
}

// unfinished is observed.unfinished where the workload has sizes changed.
func (s *situation) unfinished(serves bool) (resize.Change, *resize.Refusal) {
	if s.target.CannotResize {
		return nil, nil
	}
	return s.observed.unfinished(s.target.Resize.Enforce && !s.frozen, serves)
}

// unfinished returns the amounts in which the pod is not as its own revision says,
// and that are for us to change: what was begun, or is to be taken back, and what
// others changed if that is set back. What is due when the pod serves is among them
// if it does.
func (o *observed) unfinished(enforce, serves bool) (resize.Change, *resize.Refusal) {
	if o.template == nil {
		return nil, nil
	}
	wanted, due := o.template.amounts, o.due()
	if len(due) == 0 && !enforce && wanted.Holds(o.pod, o.own) {
		return nil, nil // as nearly always
	}
	wish := o.answered(resize.Wish{From: wanted, To: wanted, Derived: o.template.derived, Begun: o.own, Enforce: enforce})
	if serves {
		wish.Begun = o.own.Union(sets.KeySet(due))
	} else if len(due) > 0 {
		wish.From = wanted.Without(due)
		wish.To = wish.From
		wish.Begun = o.own.Difference(sets.KeySet(due))
	}
	return resize.Compare(o.pod, wish)
}

// sizesWith returns the amounts that are changed together with images whose turn has come,
// of those that were left for later, and those that still are.
func (s *situation) sizesWith(images []ImageChange) (with, later resize.Change, refused *resize.Refusal) {
	o := s.observed
	due := o.due()
	now := due.Together(o.pod, containersOf(images))
	if len(now) == 0 || o.template == nil || s.target.CannotResize {
		return nil, asChange(due), nil
	}
	rest := due.Without(now)
	wanted := o.template.amounts.Without(rest)
	with, refused = resize.Compare(o.pod, o.answered(resize.Wish{
		From: wanted, To: wanted, Derived: o.template.derived, Begun: o.own.Difference(sets.KeySet(rest)).Union(sets.KeySet(now)),
	}))
	return with, asChange(rest), refused
}

// hasGrown reports whether the pod was resized for a revision whose label it does
// not have yet, and the node has not said that it cannot be.
func (s *situation) hasGrown() bool {
	o := s.observed
	if o.template == nil || RevisionOf(o.pod) == s.target.Name || o.resized.State != resize.Done && !o.resized.IsUnderWay() {
		return false
	}
	live := resize.AmountsOf(&o.pod.Spec)
	for field := range o.own {
		if o.template.derived.Has(field) {
			continue // it has other containers to follow, too
		}
		if size, ok := o.template.amounts[field]; !ok || !live.Is(field, size) {
			return true
		}
	}
	return false
}

// grewFor reports whether the pod was made larger for a template that it is not
// labeled with yet. What restarts containers is made together with their images, and
// not waited for before.
func (o *observed) grewFor(template *Template) bool {
	live := resize.AmountsOf(&o.pod.Spec)
	for field := range o.own {
		size, ok := template.amounts[field]
		before, had := o.template.amounts[field]
		if ok && live.Is(field, size) && (!had || before.Cmp(size) != 0) && !resize.RestartsFor(o.pod, field) {
			return true
		}
	}
	return false
}

// isFinished reports whether the pod has, as far as that is for us to see to, the
// sizes of its own revision.
func (o *observed) isFinished() bool {
	if len(o.state.NextContainerResources) > 0 && o.state.Revision == RevisionOf(o.pod) {
		return false
	}
	sizes, refused := o.unfinished(false, true)
	return len(sizes) == 0 && refused == nil
}

// isDrift reports whether sizes were changed by another client.
func (o *observed) isDrift(sizes resize.Change) bool {
	due := o.due()
	return slices.ContainsFunc(sizes, func(d resize.Delta) bool {
		_, isDue := due[d.Field]
		return !isDue && !o.own.Has(d.Field)
	})
}

// shrinks returns what is due as a change, for a record that keeps it.
func (o *observed) shrinks() resize.Change { return asChange(o.due()) }

func asChange(due resize.Amounts) resize.Change {
	var change resize.Change
	for _, field := range due.Fields() {
		size := due[field]
		change = append(change, resize.Delta{Field: field, To: size.String()})
	}
	return change
}
