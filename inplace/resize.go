// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Sizes are changed by a write of their own, pods/resize, which takes no labels:
// the record and the label of the revision follow in the next write. In between
// the pod is what its spec says, and it is known by its managedFields who made it
// so: see resize.Written. Where containers are given another image in the same
// revision, the pod grows first, then it is taken out of service, and it shrinks
// when it serves again: see resize.Change.Split.

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
		change.Grow, change.Resize, change.Shrink = all.Split(p.pod, containersOf(change.all()))
	}
	return nil
}

// due returns the amounts that the record of the pod leaves for when it serves
// again.
func (p *past) due() resize.Amounts {
	if p.state.Revision != revisionName(p.pod) {
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

// hasGrown reports whether the pod was resized for a revision whose label it does
// not have yet, and the node has not said that it cannot be.
func (p *past) hasGrown(target Target) bool {
	if p.template == nil || revisionName(p.pod) == target.Name || p.resized.State != resize.Done && !p.resized.IsUnderWay() {
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

// grow makes what is to be changed before the pod is taken out of service, and
// waits until the node has done it; nil if there is nothing to do and nothing to
// wait for. A resize of an earlier revision is not waited for.
func grow(before *past, target Target, change Change, now time.Time) *Step {
	if len(change.Grow) > 0 {
		rest := Change{Images: change.Images, Later: change.Later, Resize: change.Resize, Shrink: change.Shrink}
		return &Step{
			Action: Resize, State: Resizing, Change: change,
			Message: fmt.Sprintf("%s; then %s", change.Grow, rest),
		}
	}
	if len(change.Images) == 0 || before.resized.State == resize.Done || !before.grewFor(target.Template) {
		return nil
	}
	step := awaitResize(before, target, now)
	if step.Action != Wait {
		return &step
	}
	if needsMarkReady(before.pod) && !before.resized.IsUnderWay() {
		// Its hook has let it go once, and is not asked again.
		return &Step{Action: MarkReady, State: Verifying, Message: "it serves while it waits for room: " + step.Message}
	}
	step.Change = change
	return &step
}

// awaitResize waits for the node, or gives up waiting, as the workload wants it.
func awaitResize(before *past, target Target, now time.Time) Step {
	verdict, progress := target.resizePolicy().Judge(before.resized, now)
	step := Step{
		State: Resizing, Reason: resizeReasons[progress.State], Message: progress.Message,
		Since: progress.Since, Until: progress.Recheck,
	}
	switch verdict {
	case resize.Recreate:
		return evict(before.pod, target, step, now)
	case resize.Keep:
		step.State = Stuck
		step.Message = target.kept(step.Reason, step.Message)
		return step
	case resize.Wait:
		return overdue(step, target.Deadline, now)
	default:
		return step
	}
}

var resizeReasons = map[resize.State]string{
	resize.NotObserved: ReasonNotObserved,
	resize.InProgress:  ReasonResizeInProgress,
	resize.Deferred:    ReasonResizeDeferred,
	resize.Infeasible:  ReasonResizeInfeasible,
	resize.Failed:      ReasonResizeError,
}

// resizePolicy returns what to do about resizes that do not succeed. A pod that is
// only ever changed in place is not recreated for one.
func (t Target) resizePolicy() resize.Policy {
	if t.frozen || t.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return t.Resize.Keeping()
	}
	return t.Resize
}

// settleSizes finishes or takes back the resizes of a pod that stays at its
// revision; nil if there is nothing to do and nothing to wait for.
func settleSizes(before *past, target Target, now time.Time) *Step {
	if step := resizeAgain(before, target, isReady(before.pod), now); step != nil {
		return step
	}
	if before.resized.State == resize.Done {
		return nil
	}
	step := awaitResize(before, target, now)
	return &step
}

// evicted returns the step that makes a pod go whose resize does not succeed, or
// that waits for its hook to let it go; nil if it stays.
func evicted(before *past, target Target, now time.Time) *Step {
	if before.resized.State == resize.Done {
		return nil
	}
	if sizes, refused := before.unfinished(target, false); refused != nil || len(sizes) > 0 {
		return nil // it is to have other sizes
	}
	if step := awaitResize(before, target, now); step.Evict {
		return &step
	}
	return nil
}

// resizeWhileOut makes a pod that is out of service, or given up by its hook, serve
// again only when that was done for which it is: its containers have been restarted
// for their sizes, or what somebody else changed was set back. One that has no room
// goes back: what it waits for may never come.
func resizeWhileOut(before *past, target Target, now time.Time) *Step {
	out, held := IsMarkedNotReady(before.pod), IsPreparingUpdate(before.pod) && target.Lifecycle != nil
	if !out && !held {
		return nil
	}
	sizes, refused := before.unfinished(target, false)
	if refused == nil && (out && sizes.Restarts() || held && before.isDrift(sizes)) {
		return resizeAgain(before, target, false, now)
	}
	if !out || !before.resized.IsUnderWay() {
		return nil
	}
	step := awaitResize(before, target, now)
	return &step
}

// resizeAgain returns the step that makes the sizes of a pod what its revision
// says; nil if they are.
func resizeAgain(before *past, target Target, serves bool, now time.Time) *Step {
	pod := before.pod
	sizes, refused := before.unfinished(target, serves)
	if refused != nil {
		step := refuseSizes(before, target, resizeRefusal(refused), now)
		return &step
	}
	isDue := serves && len(before.state.NextContainerResources) > 0
	if len(sizes) == 0 && !isDue {
		return nil
	}
	change := Change{Resize: sizes}
	if before.isDrift(sizes) {
		if step := hold(before, target, change, now); step != nil {
			return step
		}
	}
	if change.Restarts() && !target.keepsReady(change) {
		if step := drain(before, target, change, now); step != nil {
			return step
		}
	}
	recorded := change
	if !serves {
		recorded.Shrink = before.shrinks()
	}
	step := &Step{
		Action: Resize, State: Resizing, Message: change.String(), Change: change,
		Record: newState(before, recorded, revisionName(pod), now),
	}
	if len(sizes) == 0 {
		step.Action, step.State, step.Message = Patch, Patching, "the sizes are as the revision says"
	}
	return step
}

// isFinished reports whether the pod has, as far as that is for us to see to, the
// sizes of its own revision.
func (p *past) isFinished() bool {
	if len(p.state.NextContainerResources) > 0 && p.state.Revision == revisionName(p.pod) {
		return false
	}
	sizes, refused := p.unfinished(Target{}, true)
	return len(sizes) == 0 && refused == nil
}

// isDrift reports whether sizes were changed by somebody else.
func (p *past) isDrift(sizes resize.Change) bool {
	due := p.due()
	return slices.ContainsFunc(sizes, func(d resize.Delta) bool {
		_, isDue := due[d.Field]
		return !isDue && !p.own.Has(d.Field)
	})
}

// shrinks returns what is due as a change, for a record that keeps it.
func (p *past) shrinks() resize.Change {
	var change resize.Change
	due := p.due()
	for _, field := range due.Fields() {
		size := due[field]
		change = append(change, resize.Delta{Field: field, To: size.String()})
	}
	return change
}

// resizeRefusal says in the terms of this package why a pod cannot be resized.
func resizeRefusal(refused *resize.Refusal) *Refusal {
	return &Refusal{Reason: string(refused.Reason), Field: refused.Field, Message: refused.Message}
}

// verdictOn returns what the workload wants of a pod whose resize is refused, and
// whether the refusal is about that at all. That a request or a limit is to be
// removed is not: as other fields, it cannot be changed in place.
func (t Target) verdictOn(refused *Refusal) (resize.Verdict, bool) {
	switch refused.Reason {
	case ReasonResizeInfeasible, string(resize.NodeUnsupported):
		return t.resizePolicy().OnRefusal(true), true
	case ReasonResizeDenied, string(resize.OtherQOSClass):
		return t.resizePolicy().OnRefusal(false), true
	default:
		return resize.Keep, false
	}
}

// refuseSizes handles what is refused of a pod that stays at its revision.
func refuseSizes(before *past, target Target, refused *Refusal, now time.Time) Step {
	verdict, isResize := target.verdictOn(refused)
	step := Step{Reason: refused.Reason, Message: refused.Message}
	isOurs := len(before.own)+len(before.due()) > 0
	switch {
	case verdict == resize.Recreate && isOurs:
		return evict(before.pod, target, step, now)
	case refused.Reason == string(resize.Removed) && !target.frozen && target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
		return remove(before.pod, target, step, now)
	case isResize:
		step.State, step.Message = Stuck, target.kept(step.Reason, step.Message)
		return step
	default:
		step.State = Stuck
		return step
	}
}

// kept says of a pod that stays at its old size why, and what to do.
func (t Target) kept(reason, why string) string {
	field := "onError"
	if reason == ReasonResizeInfeasible || reason == string(resize.NodeUnsupported) {
		field = "onInfeasible"
	}
	if t.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return why + "; podUpdatePolicy InPlaceOnly keeps the pod at its old size: change the size in the template"
	}
	if reason == ReasonResizeError {
		why += "; the size is in force when the container is started anew"
	}
	return fmt.Sprintf("%s; the pod keeps its old size: change the size in the template, or allow recreation with "+
		"inPlaceUpdateStrategy.resize.%s Recreate", why, field)
}

// evict makes a pod go through the eviction API, so that its PodDisruptionBudgets
// have their say.
func evict(pod *corev1.Pod, target Target, why Step, now time.Time) Step {
	step := remove(pod, target, why, now)
	step.Evict = true
	return step
}

// ResizePatch returns the strategic merge patch of pods/resize that carries out a
// Resize step.
func ResizePatch(pod *corev1.Pod, step Step) ([]byte, error) {
	if len(step.Change.Grow) > 0 {
		return step.Change.Grow.Patch(pod)
	}
	return step.Change.Resize.Patch(pod)
}

// TrialResize returns the patch of pods/resize to all the sizes that a step leads
// to, for a dry run, and whether there are any.
func TrialResize(pod *corev1.Pod, step Step) (body []byte, resizes bool, err error) {
	all := step.Change.resizes()
	if len(all) == 0 {
		return nil, false, nil
	}
	body, err = all.Patch(pod)
	return body, true, err
}

// WithAnswer returns a Resize step whose record says what the API server made of the
// sizes, where that is something else than it was asked for. A step without a record
// gets one if there is something to say.
func WithAnswer(pod *corev1.Pod, step Step, answer *corev1.Pod, now time.Time) Step {
	asked, stored := resize.Amounts{}, resize.Amounts{}
	written := step.Change.Resize
	if len(step.Change.Grow) > 0 {
		written = step.Change.Grow
	}
	live := resize.AmountsOf(&answer.Spec)
	for field, size := range written.Amounts() {
		if kept, ok := live[field]; ok && kept.Cmp(size) != 0 {
			asked[field], stored[field] = size, kept
		}
	}
	if len(asked) == 0 {
		return step
	}
	if step.Record == nil {
		before := pastOf(pod, now)
		step.Record = newState(before, Change{Shrink: before.shrinks()}, revisionName(pod), now)
		step.Change = Change{}
	}
	record := *step.Record
	record.Resized = resize.FromRequirements(record.Resized, pod).With(stored).Requirements()
	record.ResizedFrom = resize.FromRequirements(record.ResizedFrom, pod).With(asked).Requirements()
	step.Record = &record
	return step
}
