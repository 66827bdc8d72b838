// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
)

// Plan returns what would come of a change: changed is the workload as a dry run of it
// returned it. The operator's own decision is made for it, and the API server is asked by
// dry runs what it says to the changes of the pods, if the user may change them.
func (c *Cluster) Plan(ctx context.Context, found Found, changed client.Object) (report.Plan, error) {
	p, err := c.planned(ctx, found, changed)
	if err != nil {
		return report.Plan{}, err
	}
	return p.plan, nil
}

// planned returns a planner that is done.
func (c *Cluster) planned(ctx context.Context, found Found, changed client.Object) (*planner, error) {
	reads := newLenient(c.Client)
	p := &planner{observer: c.observer(newSnapshot(reads)), found: found, changed: changed}
	p.plan = report.Plan{
		Workload: report.RefOf(found.Kind.GroupVersionKind, found.Object),
		Changes:  changesOf(found.Kind.Kind, found.Object, changed), Pods: []report.PlannedPod{},
	}
	view, err := kinds.Read(found.Object)
	if err != nil {
		return nil, err
	}
	p.eyes.Pulling = p.pulling(ctx, found, view)
	if err := p.askWithRights(ctx, c.Client); err != nil {
		return nil, err
	}
	if err := p.decide(ctx); err != nil {
		return nil, err
	}
	p.measure(ctx, c.Client)
	p.plan.Notes = append(p.plan.Notes, reads.said()...)
	return p, nil
}

// planner collects what would come of a change.
type planner struct {
	observer
	found   Found
	changed client.Object
	plan    report.Plan
	// resized are the pods as they would be, with what they are.
	resized []resizedPod
	// pulls are those that pods need before they are changed in place, or others come in their place.
	pulls []neededPull
	// drainsUnasked: the user may not ask whether pods can be drained. creationsUnasked: nor
	// whether new pods would be accepted.
	drainsUnasked, creationsUnasked bool
}

type resizedPod struct {
	before, after *corev1.Pod
}

// askWithRights has dry runs of the changes of pods made, where the user may change pods.
// Those of others would be refused for lack of rights, which says nothing.
func (p *planner) askWithRights(ctx context.Context, live client.Client) error {
	mayPatch, err := p.may(ctx, live, "patch", "")
	if err != nil {
		return err
	}
	mayResize, err := p.may(ctx, live, "patch", resize.Subresource)
	if err != nil {
		return err
	}
	mayDrain, err := p.may(ctx, live, "patch", "status")
	if err != nil {
		return err
	}
	mayCreate, err := p.may(ctx, live, "create", "")
	if err != nil {
		return err
	}
	asks := mayPatch && (mayResize || !p.resizes())
	p.drainsUnasked, p.creationsUnasked = !asks || !mayDrain, !asks || !mayCreate
	switch {
	case !mayPatch:
		p.note("you may not patch pods: admission was not asked what it says to their changes")
	case !mayResize && p.resizes():
		p.note("you may not patch pods/resize: admission was not asked what it says to the new sizes")
	case !mayDrain:
		p.eyes.Client = workload.Withhold(p.reader, live, "status")
	default:
		p.eyes.Client = workload.Withhold(p.reader, live)
	}
	return nil
}

// resizes reports whether the change is one of requests or limits.
func (p *planner) resizes() bool {
	return slices.ContainsFunc(p.plan.Changes, func(change string) bool { return strings.Contains(change, ".resources") })
}

// changesMetadata reports whether the change is one of labels or annotations of pods.
func (p *planner) changesMetadata() bool {
	return slices.ContainsFunc(p.plan.Changes, func(change string) bool {
		return strings.Contains(change, "template.metadata.labels") || strings.Contains(change, "template.metadata.annotations")
	})
}

// may reports whether the user may do something to the pods of the namespace.
func (p *planner) may(ctx context.Context, live client.Client, verb, subresource string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: p.found.Object.GetNamespace(), Verb: verb, Resource: "pods", Subresource: subresource,
		},
	}}
	if err := live.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask for your rights: %w", err)
	}
	return review.Status.Allowed, nil
}

func (p *planner) note(format string, words ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, words...))
}

// decide has the operator's decision made for the changed workload.
func (p *planner) decide(ctx context.Context) error {
	// What confirms the workload before something irreversible is done compares generations.
	p.changed.SetGeneration(p.found.Object.GetGeneration())
	view, err := kinds.Read(p.changed)
	if err != nil {
		return err
	}
	if view.Resume() {
		p.note("the update is paused: this is what comes when it is resumed")
	}
	switch {
	case view.Kind.IsOurs():
		return p.take(view.Inspect(ctx, p.eyes))
	case kinds.IsHeld(p.changed):
		return p.decideHeld(ctx)
	default:
		return p.leaveToKubernetes(ctx)
	}
}

// newPodsUnasked is the note of a plan that lacks what the API server says of new pods.
const newPodsUnasked = "the API server was not asked about new pods, whether it accepts them and what admission puts into them: that takes the right to create and patch pods"

// take notes what the operator decides.
func (p *planner) take(found workload.Inspection) error {
	if !found.Planned {
		return Explain(fmt.Errorf("plan %s: %w", p.found, found.Failure))
	}
	p.plan.Pods = report.PlannedPods(found.Workload, found.Plan, p.now)
	p.plan.Claims = report.PlannedClaims(found.Workload)
	p.refusals(found.Plan)
	if p.drainsUnasked && slices.ContainsFunc(found.Plan.Pods, func(pod inplace.PodState) bool { return inplace.DrainsByLabel(pod.Pod, pod.Step) }) {
		p.note("the API server was not asked whether it keeps drained pods out of service: that takes the right to patch pods and pods/status")
	}
	if p.creationsUnasked && (p.changesMetadata() || slices.ContainsFunc(found.Plan.Pods, func(pod inplace.PodState) bool { return pod.Step.Deletes() })) {
		p.note(newPodsUnasked)
	}
	p.size(found)
	if found.Workload.Stopped && p.found.Kind.IsOurs() {
		p.note("updateStrategy OnDelete: pods get the new revision when they are deleted")
	}
	if missing := found.Workload.Replicas - len(found.Plan.Pods); missing > 0 {
		p.note("%s created", inplace.PodsThat(missing, "is", "are"))
	}
	return nil
}

// refusals notes what the API server refuses, once for all pods of which it says the same,
// and that there is no room for the change.
func (p *planner) refusals(plan inplace.Plan) {
	said := sets.New[string]()
	for _, b := range plan.Blockers {
		words := strings.ReplaceAll(b.Message, b.Pod.Name, "POD")
		if (b.Denied || b.Reason == inplace.ReasonNoRoom) && !said.HasAny(words, b.Message) {
			said.Insert(words, b.Message)
			p.plan.Refusals = append(p.plan.Refusals, b.Message)
		}
	}
}

// size notes the pods whose resources change, and the images that they need on their nodes.
func (p *planner) size(found workload.Inspection) {
	claimed := found.Workload
	claimed.Pods = slices.Clone(claimed.Pods)
	for i := range claimed.Pods {
		claimed.Pods[i].Claims = nil // they are changed by then
	}
	after := inplace.MakePlan(claimed, p.now)
	for i, state := range found.Plan.Pods {
		step := state.Step
		if step.State == inplace.UpdatingClaims {
			step = after.Pods[i].Step
		}
		p.need(state.Pod, step)
		if change := step.Change.Resizes(); len(change) > 0 {
			p.resized = append(p.resized, resizedPod{state.Pod, change.Applied(state.Pod)})
		}
	}
}

// decideHeld has the decision made for a workload of Kubernetes that is held, or would be.
func (p *planner) decideHeld(ctx context.Context) error {
	found := native.Inspect(ctx, p.eyes, native.Kind(p.found.Kind.Kind), p.changed, true)
	if found.Invalid != nil {
		p.plan.Refusals = append(p.plan.Refusals, found.Invalid.Error())
	}
	if found.Ending == "" || found.Planned && len(p.plan.Changes) == 0 {
		if err := p.take(found.Inspection); err != nil {
			return err
		}
		for i := range p.plan.Pods {
			if name := p.plan.Pods[i].Name; found.Others.Has(name) {
				p.plan.Pods[i] = report.PlannedPod{
					Name: name, Way: report.Delete, Reason: report.ReasonByKubernetes, Message: "Kubernetes takes it away when the others are updated",
				}
			}
		}
		return nil
	}
	if p.creationsUnasked {
		p.note(newPodsUnasked)
	}
	return p.allByKubernetes(ctx, found.Ending)
}

// leaveToKubernetes says what Kubernetes does with a workload that is not held.
func (p *planner) leaveToKubernetes(ctx context.Context) error {
	same, err := sameTemplate(p.found.Object, p.changed)
	if err != nil {
		return err
	}
	if same {
		pods, err := p.pods(ctx, p.found)
		for _, pod := range pods {
			p.plan.Pods = append(p.plan.Pods, report.PlannedPod{Name: pod.Name, Way: report.Unchanged})
		}
		return err
	}
	if _, optedIn := p.changed.GetLabels()[nativeapi.UpdatePolicyLabel]; optedIn {
		return p.allByKubernetes(ctx, "the admission policies of Insitu did not hold it: are they installed?")
	}
	return p.allByKubernetes(ctx, fmt.Sprintf("%s is driven by Kubernetes alone: with the label %s=%s it would be changed in place where that can be",
		p.found, nativeapi.UpdatePolicyLabel, appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))
}

func (p *planner) allByKubernetes(ctx context.Context, why string) error {
	pods, err := p.pods(ctx, p.found)
	if err != nil {
		return err
	}
	object := p.changed
	if kinds.IsHeld(object) {
		if object, err = native.Released(native.Kind(p.found.Kind.Kind), object); err != nil {
			return err
		}
	}
	view, err := kinds.Read(object)
	if err != nil {
		return err
	}
	p.plan.Pods = report.ByKubernetes(view, pods, why)
	return nil
}

// changesOf returns the fields that the user changes: the spec, and labels and
// annotations. The hold is no change of theirs.
func changesOf(kind string, before, after client.Object) []string {
	return report.Changes("", visible(kind, before), visible(kind, after))
}

// visible returns what users write of an object.
func visible(kind string, object client.Object) map[string]any {
	if kinds.IsHeld(object) {
		if released, err := native.Released(native.Kind(kind), object); err == nil {
			object = released
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil // it was read from JSON
	}
	shown := map[string]any{"spec": fields["spec"]}
	metadata := map[string]any{}
	for kind, all := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		kept := map[string]any{}
		for key, value := range all {
			if !slices.Contains(notTheirs, key) {
				kept[key] = value
			}
		}
		metadata[kind] = kept
	}
	shown["metadata"] = metadata
	return shown
}

// notTheirs are labels and annotations that say nothing of what the user wants.
var notTheirs = []string{
	nativeapi.HeldLabel, nativeapi.StatusAnnotation, nativeapi.HeldPartitionAnnotation,
	nativeapi.HeldMaxUnavailableAnnotation, nativeapi.HeldMaxSurgeAnnotation,
	nativeapi.HeldMinReadySecondsAnnotation, nativeapi.HeldProgressDeadlineSecondsAnnotation,
	nativeapi.HeldObservedGenerationAnnotation,
	corev1.LastAppliedConfigAnnotation, "deployment.kubernetes.io/revision", appsv1.DeprecatedTemplateGeneration,
}

// sameTemplate reports whether two workloads have the same pod template.
func sameTemplate(a, b client.Object) (bool, error) {
	before, err := templateOf(a)
	if err != nil {
		return false, err
	}
	after, err := templateOf(b)
	if err != nil {
		return false, err
	}
	return before.Equal(after), nil
}

func templateOf(object client.Object) (*inplace.Template, error) {
	view, err := kinds.Read(object)
	if err != nil {
		return nil, err
	}
	return inplace.NewTemplate(*view.Template)
}
