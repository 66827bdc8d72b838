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
func (p *past) addResizes(change *Change, from, to *Template) *Refusal {
	begun := p.own.Union(sets.KeySet(p.due()))
	if len(begun) == 0 && from.amounts.Equal(to.amounts) {
		return nil // as nearly always
	}
	all, refused := resize.Compare(p.pod, p.answered(resize.Wish{
		From: from.amounts, To: to.amounts, Derived: to.derived, Begun: begun,
	}))
	if refused != nil {
		return resizeRefusal(refused)
	}
	change.Resize = all
	if len(change.Images) > 0 && p.pod.Status.Phase == corev1.PodRunning {
		// One that has not run yet is not served by an order; it may have no room
		// on any node before it shrinks.
		change.Grow, change.Resize, change.Shrink = all.Split(p.pod, containersOf(change.Images), containersOf(change.Later))
	}
	return nil
}

// due returns the amounts that the record of the pod leaves for when it serves
// again.
func (p *past) due() resize.Amounts {
	if p.state.Revision != RevisionOf(p.pod) {
		return nil
	}
	return resize.FromRequirements(p.state.NextContainerResources, p.pod)
}

// answered adds to a wish what the API server made of earlier ones.
func (p *past) answered(wish resize.Wish) resize.Wish {
	if len(p.state.Resized) > 0 {
		wish.Asked = resize.FromRequirements(p.state.ResizedFrom, p.pod)
		wish.Answered = resize.FromRequirements(p.state.Resized, p.pod)
	}
	return wish
}

// unfinished returns the amounts in which the pod is not as its own revision says,
// and that are for us to change: what was begun, or is to be taken back, and what
// others changed if that is set back. What is due when the pod serves is among them
// if it does.
func (p *past) unfinished(target Target, serves bool) (resize.Change, *resize.Refusal) {
	if p.template == nil || target.CannotResize {
		return nil, nil
	}
	enforce := target.Resize.Enforce && !target.frozen
	wanted, due := p.template.amounts, p.due()
	if len(due) == 0 && !enforce && wanted.Holds(p.pod, p.own) {
		return nil, nil // as nearly always
	}
	wish := p.answered(resize.Wish{From: wanted, To: wanted, Derived: p.template.derived, Begun: p.own, Enforce: enforce})
	if serves {
		wish.Begun = p.own.Union(sets.KeySet(due))
	} else if len(due) > 0 {
		wish.From = wanted.Without(due)
		wish.To = wish.From
		wish.Begun = p.own.Difference(sets.KeySet(due))
	}
	return resize.Compare(p.pod, wish)
}

// sizesWith returns the amounts that are changed together with images whose turn has come,
// of those that were left for later, and those that still are.
func (p *past) sizesWith(images []ImageChange, target Target) (with, later resize.Change, refused *resize.Refusal) {
	due := p.due()
	now := due.Together(p.pod, containersOf(images))
	if len(now) == 0 || p.template == nil || target.CannotResize {
		return nil, asChange(due), nil
	}
	rest := due.Without(now)
	wanted := p.template.amounts.Without(rest)
	with, refused = resize.Compare(p.pod, p.answered(resize.Wish{
		From: wanted, To: wanted, Derived: p.template.derived, Begun: p.own.Difference(sets.KeySet(rest)).Union(sets.KeySet(now)),
	}))
	return with, asChange(rest), refused
}

// hasGrown reports whether the pod was resized for a revision whose label it does
// not have yet, and the node has not said that it cannot be.
func (p *past) hasGrown(target Target) bool {
	if p.template == nil || RevisionOf(p.pod) == target.Name || p.resized.State != resize.Done && !p.resized.IsUnderWay() {
		return false
	}
	live := resize.AmountsOf(&p.pod.Spec)
	for field := range p.own {
		if p.template.derived.Has(field) {
			continue // it has other containers to follow, too
		}
		if size, ok := p.template.amounts[field]; !ok || !live.Is(field, size) {
			return true
		}
	}
	return false
}

// grewFor reports whether the pod was made larger for a template that it is not
// labeled with yet. What restarts containers is made together with their images, and
// not waited for before.
func (p *past) grewFor(template *Template) bool {
	live := resize.AmountsOf(&p.pod.Spec)
	for field := range p.own {
		size, ok := template.amounts[field]
		before, had := p.template.amounts[field]
		if ok && live.Is(field, size) && (!had || before.Cmp(size) != 0) && !resize.RestartsFor(p.pod, field) {
			return true
		}
	}
	return false
}

// isFinished reports whether the pod has, as far as that is for us to see to, the
// sizes of its own revision.
func (p *past) isFinished() bool {
	if len(p.state.NextContainerResources) > 0 && p.state.Revision == RevisionOf(p.pod) {
		return false
	}
	sizes, refused := p.unfinished(Target{}, true)
	return len(sizes) == 0 && refused == nil
}

// isDrift reports whether sizes were changed by another client.
func (p *past) isDrift(sizes resize.Change) bool {
	due := p.due()
	return slices.ContainsFunc(sizes, func(d resize.Delta) bool {
		_, isDue := due[d.Field]
		return !isDue && !p.own.Has(d.Field)
	})
}

// shrinks returns what is due as a change, for a record that keeps it.
func (p *past) shrinks() resize.Change { return asChange(p.due()) }

func asChange(due resize.Amounts) resize.Change {
	var change resize.Change
	for _, field := range due.Fields() {
		size := due[field]
		change = append(change, resize.Delta{Field: field, To: size.String()})
	}
	return change
}
