// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

const (
	drainFinalizer = "example.io/drain"
	stateNormal    = appsv1beta1.LifecycleStateNormal
	statePreparing = appsv1beta1.LifecycleStatePreparingUpdate
	stateUpdating  = appsv1beta1.LifecycleStateUpdating
	stateUpdated   = appsv1beta1.LifecycleStateUpdated
	stateDeleting  = appsv1beta1.LifecycleStatePreparingDelete
	stateStarting  = appsv1beta1.LifecycleStatePreparingNormal
)

func hook(mark bool) *appsv1beta1.LifecycleHook {
	return &appsv1beta1.LifecycleHook{FinalizersHandler: []string{drainFinalizer}, MarkPodNotReady: mark}
}

// hooked is a settled pod at revision a, with the finalizer of its hooks and a
// lifecycle state.
func hooked(state appsv1beta1.LifecycleStateType) *builders.PodBuilder {
	return settledPod().With(func(p *corev1.Pod) { p.Finalizers = []string{"example.io/other", drainFinalizer} }).
		Label(appsv1beta1.LifecycleStateKey, string(state)).
		Annotation(appsv1beta1.LifecycleTimestampKey, after(-30).Format(time.RFC3339))
}

// held says what it is, or was, held for.
func held(b *builders.PodBuilder) *builders.PodBuilder {
	return b.Annotation(appsv1beta1.PendingUpdateKey, "{}")
}

// changing has not been restarted yet.
func changing(b *builders.PodBuilder) *builders.PodBuilder {
	return b.Record(record(entry("nginx:before"))).Generation(2, 1)
}

func free(b *builders.PodBuilder) *builders.PodBuilder {
	return b.With(func(p *corev1.Pod) { p.Finalizers = []string{"example.io/other"} })
}

// announced is held for what comes next.
func announced(t *testing.T, b *builders.PodBuilder, lifecycle appsv1beta1.Lifecycle) *builders.PodBuilder {
	t.Helper()
	raw, err := json.Marshal(nextOf(t, b.Build(), lifecycle, latestImage).Pending)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b.Annotation(appsv1beta1.PendingUpdateKey, string(raw))
}

// nextOf returns the next step of a pod at revision a to revision b with an image.
func nextOf(t *testing.T, pod *corev1.Pod, lifecycle appsv1beta1.Lifecycle, image string) Step {
	t.Helper()
	target := Target{
		Revision: Revision{Name: "b", Template: simple(t, image)}, Lifecycle: &lifecycle,
		Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
	}
	return Next(PodFacts{Pod: pod, From: &Revision{Name: "a", Template: simple(t, alpineImage)}}, target, patched)
}

func TestTheHookOfAnUpdate(t *testing.T) {
	update := appsv1beta1.Lifecycle{InPlaceUpdate: hook(false)}
	marking := appsv1beta1.Lifecycle{InPlaceUpdate: hook(true)}
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		lifecycle appsv1beta1.Lifecycle
		action    Action
		state     State
		reason    string
		writes    appsv1beta1.LifecycleStateType
		marks     string
	}{
		"holds a pod that has its finalizer":        {hooked(""), update, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, ""},
		"also one that has not been normal yet":     {hooked(stateStarting), update, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, ""},
		"marks it not ready":                        {hooked(stateNormal), marking, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, "preUpdateHook"},
		"holds on":                                  {announced(t, hooked(statePreparing), update), update, Wait, HookHeld, ReasonInPlaceUpdateHook, "", ""},
		"says what another revision will do":        {hooked(statePreparing), update, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, ""},
		"releases the pod":                          {free(hooked(statePreparing)), update, MarkNotReady, Draining, "", "", ""},
		"does not hold a pod without its finalizer": {free(hooked(stateNormal)), update, MarkNotReady, Draining, "", "", ""},
		"does not hold a second time":               {changing(hooked(stateUpdating)), update, MarkNotReady, Draining, "", "", ""},
		"holds again when the update is over":       {hooked(stateUpdating), update, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, ""},
		"is asked again for a pod that was updated": {free(hooked(stateUpdated)), update, SetLifecycle, HookHeld, ReasonInPlaceUpdateHook, statePreparing, ""},
		"is none":        {hooked(stateNormal), appsv1beta1.Lifecycle{}, MarkNotReady, Draining, "", "", ""},
		"is another one": {hooked(stateNormal), appsv1beta1.Lifecycle{PreDelete: hook(false)}, MarkNotReady, Draining, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step := nextOf(t, tc.pod.Build(), tc.lifecycle, latestImage)
			g.Expect(step.Action).To(Equal(tc.action))
			g.Expect(step.State).To(Equal(tc.state))
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Lifecycle).To(Equal(tc.writes))
			g.Expect(step.NotReadyKey).To(Equal(tc.marks))
			g.Expect(step.LeadsToPatch).To(BeTrue())
			g.Expect(step.disrupts()).To(Equal(step.Action != Wait))
		})
	}
}

func TestAHeldPodSaysWhatComes(t *testing.T) {
	g := NewWithT(t)
	pod := hooked(stateNormal).Build()
	step := nextOf(t, pod, appsv1beta1.Lifecycle{InPlaceUpdate: hook(false)}, latestImage)

	body, status, err := LifecyclePatch(pod, step, metav1.NewTime(patched))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status).To(BeFalse(), "nothing is to be marked")
	merged := mergePod(t, pod, body)
	g.Expect(merged.Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "PreparingUpdate"))
	g.Expect(merged.Annotations).To(HaveKeyWithValue(appsv1beta1.LifecycleTimestampKey, patched.UTC().Format(time.RFC3339)))
	g.Expect(merged.Annotations[appsv1beta1.PendingUpdateKey]).To(MatchJSON(
		`{"revision":"b","containers":[{"name":"main","image":"nginx:alpine","newImage":"nginx:latest"}]}`))
	g.Expect(merged.Finalizers).To(Equal(pod.Finalizers))
	g.Expect(merged.Spec).To(Equal(pod.Spec))

	// Held, released, changed: what it said is gone with the change.
	freed := merged.DeepCopy()
	freed.Finalizers = nil
	target := Target{Revision: Revision{Name: "b", Template: simple(t, latestImage)}, Lifecycle: &appsv1beta1.Lifecycle{InPlaceUpdate: hook(false)}}
	change, _ := Compare(freed, simple(t, alpineImage), simple(t, latestImage), patched)
	body, err = RevisionPatch(freed, *situationOf(PodFacts{Pod: freed}, &target, patched).with(change).patch())
	g.Expect(err).NotTo(HaveOccurred())
	updated := mergePod(t, freed, body)
	g.Expect(updated.Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "Updating"))
	g.Expect(updated.Annotations).To(HaveKey(appsv1beta1.PendingUpdateKey), "it tells that the pod was held")
	rested := finishOf(observedOf(updated, patched), target, patched)
	g.Expect(rested.Lifecycle).To(BeEmpty(), "its container is not restarted yet")
}

func TestTheHookGetsItsHandlersBack(t *testing.T) {
	g := NewWithT(t)
	lifecycle := appsv1beta1.Lifecycle{InPlaceUpdate: &appsv1beta1.LifecycleHook{
		FinalizersHandler: []string{drainFinalizer}, LabelsHandler: map[string]string{"example.io/hold": "yes"},
	}}
	pod := free(hooked(stateUpdated)).Build()
	body, _, err := LifecyclePatch(pod, nextOf(t, pod, lifecycle, latestImage), metav1.NewTime(patched))
	g.Expect(err).NotTo(HaveOccurred())
	merged := mergePod(t, pod, body)
	g.Expect(merged.Finalizers).To(ConsistOf("example.io/other", drainFinalizer))
	g.Expect(merged.Labels).To(HaveKeyWithValue("example.io/hold", "yes"))
}

func TestAPodComesToRest(t *testing.T) {
	all := appsv1beta1.Lifecycle{InPlaceUpdate: hook(true), PreNormal: hook(false), PreDelete: hook(false)}
	gone := appsv1beta1.Lifecycle{PreDelete: hook(true)}
	ungated := func(b *builders.PodBuilder) *builders.PodBuilder {
		return b.With(func(p *corev1.Pod) { p.Spec.ReadinessGates = nil })
	}
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		lifecycle appsv1beta1.Lifecycle
		action    Action
		state     State
		reason    string
		writes    appsv1beta1.LifecycleStateType
	}{
		"normal":                                    {hooked(stateNormal), all, Wait, Settled, "", ""},
		"without a state":                           {hooked(""), all, Wait, Settled, "", ""},
		"after an update, hook there":               {ungated(hooked(stateUpdating)), all, SetLifecycle, Verifying, "", stateNormal},
		"after an update, hook not back":            {held(free(hooked(stateUpdating))), all, SetLifecycle, Verifying, "", stateUpdated},
		"after an update, never held":               {free(hooked(stateUpdating)), all, SetLifecycle, Verifying, "", stateNormal},
		"updated, hook not back":                    {free(hooked(stateUpdated)), all, Wait, HookHeld, ReasonUpdatedHook, ""},
		"updated, hook back":                        {hooked(stateUpdated), all, SetLifecycle, Verifying, "", stateNormal},
		"updated, hook taken from the workload":     {free(hooked(stateUpdated)), gone, SetLifecycle, Verifying, "", stateNormal},
		"no longer to be updated":                   {hooked(statePreparing), all, SetLifecycle, Verifying, "", stateNormal},
		"no longer to be updated, though released":  {held(free(hooked(statePreparing))), all, SetLifecycle, Verifying, "", stateUpdated},
		"new, hook not there":                       {free(hooked(stateStarting)), all, Wait, HookHeld, ReasonPreNormalHook, ""},
		"new, hook there":                           {hooked(stateStarting), all, SetLifecycle, Verifying, "", stateNormal},
		"wanted again before it was deleted":        {hooked(stateDeleting), all, SetLifecycle, Verifying, "", stateNormal},
		"wanted again, and not normal yet":          {free(hooked(stateDeleting)), all, SetLifecycle, Verifying, "", stateStarting},
		"wanted again, but marked for its deletion": {hooked(stateDeleting), gone, Wait, HookHeld, ReasonPreDeleteHook, ""},
		"wanted again, marked and released":         {free(hooked(stateDeleting)), gone, Recreate, Recreating, ReasonPreDeleteHook, ""},
		"out of service, goes back with its state":  {hooked(stateUpdating).Gated(corev1.ConditionFalse, after(1)), all, MarkReady, Verifying, "", stateNormal},
		"a workload without hooks minds no label":   {hooked(stateUpdated), appsv1beta1.Lifecycle{}, SetLifecycle, Verifying, "", stateNormal},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step := finishOf(observedOf(tc.pod.Build(), patched), Target{Revision: Revision{Name: "a"}, Lifecycle: &tc.lifecycle}, patched)
			g.Expect(step.Action).To(Equal(tc.action))
			g.Expect(step.State).To(Equal(tc.state))
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Lifecycle).To(Equal(tc.writes))
			g.Expect(step.disrupts()).To(Equal(step.Action == Recreate))
		})
	}
	t.Run("no lifecycle, no writes but for what a former one left", func(t *testing.T) {
		for _, state := range []appsv1beta1.LifecycleStateType{"", stateNormal} {
			NewWithT(t).Expect(finishOf(observedOf(hooked(state).Build(), patched), Target{}, patched)).To(Equal(Step{State: Settled}), string(state))
		}
		for _, state := range []appsv1beta1.LifecycleStateType{stateStarting, statePreparing, stateUpdating, stateUpdated, stateDeleting} {
			NewWithT(t).Expect(finishOf(observedOf(hooked(state).Build(), patched), Target{}, patched)).To(And(
				HaveField("Action", SetLifecycle), HaveField("Lifecycle", stateNormal)), string(state))
		}
	})
}

func TestRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		lifecycle *appsv1beta1.Lifecycle
		action    Action
		state     State
		writes    appsv1beta1.LifecycleStateType
		marks     string
	}{
		"no hooks":          {hooked(stateNormal), nil, Recreate, Recreating, "", ""},
		"no such hook":      {hooked(stateNormal), &appsv1beta1.Lifecycle{InPlaceUpdate: hook(true)}, Recreate, Recreating, "", ""},
		"not hooked":        {free(hooked(stateNormal)), &appsv1beta1.Lifecycle{PreDelete: hook(true)}, Recreate, Recreating, "", ""},
		"hooked":            {hooked(stateNormal), &appsv1beta1.Lifecycle{PreDelete: hook(false)}, SetLifecycle, HookHeld, stateDeleting, ""},
		"hooked and marked": {hooked(stateUpdating), &appsv1beta1.Lifecycle{PreDelete: hook(true)}, SetLifecycle, HookHeld, stateDeleting, "preDeleteHook"},
		"held":              {hooked(stateDeleting), &appsv1beta1.Lifecycle{PreDelete: hook(true)}, Wait, HookHeld, "", ""},
		"released":          {free(hooked(stateDeleting)), &appsv1beta1.Lifecycle{PreDelete: hook(true)}, Recreate, Recreating, "", ""},
		"deleted by others": {hooked(stateDeleting).Deleted(patched), &appsv1beta1.Lifecycle{PreDelete: hook(true)}, Wait, Recreating, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step := Remove(tc.pod.Build(), Target{Lifecycle: tc.lifecycle}, patched)
			g.Expect(step.Action).To(Equal(tc.action))
			g.Expect(step.State).To(Equal(tc.state))
			g.Expect(step.Lifecycle).To(Equal(tc.writes))
			g.Expect(step.NotReadyKey).To(Equal(tc.marks))
		})
	}
}

// What cannot be changed in place is recreated, and the hook preDelete has its say.
func TestARecreationIsHeld(t *testing.T) {
	g := NewWithT(t)
	to := parse(t, `{"spec":{"containers":[{"name":"main","image":"nginx:alpine","env":[{"name":"A","value":"1"}]}]}}`)
	target := Target{Revision: Revision{Name: "b", Template: to}, Lifecycle: &appsv1beta1.Lifecycle{PreDelete: hook(false)}}
	for policy, specified := range map[appsv1beta1.PodUpdateStrategyType]bool{"InPlaceIfPossible": false, "ReCreate": false, "InPlaceOnly": true} {
		pod := hooked(stateNormal)
		if specified {
			pod.Label(appsv1beta1.SpecifiedDeleteKey, "true")
		}
		target.Policy = policy
		step := Next(PodFacts{Pod: pod.Build(), From: &Revision{Name: "a", Template: simple(t, alpineImage)}}, target, patched)
		g.Expect(step.Action).To(Equal(SetLifecycle), string(policy))
		g.Expect(step.Lifecycle).To(Equal(stateDeleting), string(policy))
		g.Expect(step.disrupts()).To(BeTrue())
	}
}

func TestPodsInTheHandOfAHookAreNotAvailable(t *testing.T) {
	lifecycle := &appsv1beta1.Lifecycle{InPlaceUpdate: hook(false), PreNormal: hook(false)}
	for state, want := range map[appsv1beta1.LifecycleStateType]bool{
		"": true, stateNormal: true, stateStarting: false, statePreparing: false, stateUpdating: false, stateUpdated: false, stateDeleting: false,
	} {
		w := Workload{
			Target: Target{Revision: Revision{Name: "a", Template: simple(t, alpineImage)}, Lifecycle: lifecycle}, Replicas: 1, MaxUnavailable: 1,
			Pods: []PodFacts{{Pod: hooked(state).Build()}},
		}
		NewWithT(t).Expect(MakePlan(w, patched).Pods[0].Available).To(Equal(want), string(state))
		w.Target.Lifecycle = nil
		NewWithT(t).Expect(MakePlan(w, patched).Pods[0].Available).To(BeTrue(), "no hooks, "+string(state))
	}
}

// What a pod was held for, or marked for, must not be forgotten by the next wish.
func TestWhatIsOnItsWayOutStaysSo(t *testing.T) {
	g := NewWithT(t)
	marking := appsv1beta1.Lifecycle{PreDelete: hook(true), InPlaceUpdate: hook(false)}
	g.Expect(nextOf(t, hooked(stateDeleting).Build(), marking, latestImage)).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonPreDeleteHook)))
	g.Expect(nextOf(t, free(hooked(stateDeleting)).Build(), marking, latestImage).Action).To(Equal(Recreate))
}

// A pod that has ended is replaced by its controller. If it were updated or brought
// to rest as well, both would take turns for ever.
func TestAPodThatHasEndedIsLeftToItsController(t *testing.T) {
	g := NewWithT(t)
	lifecycle := appsv1beta1.Lifecycle{PreDelete: hook(false), InPlaceUpdate: hook(false)}
	ended := hooked(stateDeleting).With(func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })
	for _, step := range []Step{
		nextOf(t, ended.Build(), lifecycle, latestImage),
		finishOf(observedOf(ended.Build(), patched), Target{Lifecycle: &lifecycle}, patched),
	} {
		g.Expect(step).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonEnded), HaveField("Message", ContainSubstring("Evicted"))))
	}
}

func TestANewPodIsNotNormalByAnUpdate(t *testing.T) {
	g := NewWithT(t)
	lifecycle := appsv1beta1.Lifecycle{PreNormal: hook(false)}
	pod := free(hooked(stateStarting)).Gated(corev1.ConditionFalse, after(-20)).Ready(false, after(-20)).Build()
	step := nextOf(t, pod, lifecycle, latestImage)
	g.Expect(step.Action).To(Equal(Patch))
	g.Expect(step.Lifecycle).To(BeEmpty())
}

// A pod that was taken out of service is changed when it is, also if the way in
// which it was taken out is not asked for any more.
func TestAMarkedPodIsDrainedWhateverIsAskedFor(t *testing.T) {
	pod := kruiseGated("[" + ours + "]").Build()
	NewWithT(t).Expect(nextOf(t, pod, appsv1beta1.Lifecycle{}, latestImage).Reason).To(Equal(ReasonStillReady))
}

// Three revisions in flight, a hook and a budget of one: the pod that the hook holds
// is updated to the newest, and no pods wait for each other.
func TestHooksAndTheBudget(t *testing.T) {
	g := NewWithT(t)
	lifecycle := appsv1beta1.Lifecycle{InPlaceUpdate: hook(false)}
	named := func(name string, b *builders.PodBuilder) PodFacts {
		pod := b.With(func(p *corev1.Pod) { p.Name, p.UID = name, types.UID("uid-"+name) }).Build()
		return PodFacts{Pod: pod, From: &Revision{Name: "a", Template: simple(t, alpineImage)}}
	}
	w := Workload{
		Target: Target{
			Revision: Revision{Name: "c", Template: simple(t, "nginx:third")}, Lifecycle: &lifecycle, Policy: "InPlaceIfPossible",
		},
		Replicas: 3, MaxUnavailable: 1,
		Pods: []PodFacts{named("p2", announced(t, hooked(statePreparing), lifecycle)), named("p1", hooked(stateNormal)), named("p0", hooked(stateNormal))},
	}
	plan := MakePlan(w, patched)
	g.Expect(moves(plan)).To(Equal([]string{"SetLifecycle p2"}), "the announcement is brought up to date")

	// The partition is raised over the pod that is held: it goes back.
	w.Pods[0].Held = true
	plan = MakePlan(w, patched)
	g.Expect(plan.Moves[0].Step.Lifecycle).To(Equal(stateNormal))
	g.Expect(moves(plan)).To(Equal([]string{"SetLifecycle p2"}), "the others wait until it is back")

	// The budget is lowered while two are held: both go on.
	w.Pods[0].Held = false
	w.Pods[1] = named("p1", free(hooked(statePreparing)))
	g.Expect(moves(MakePlan(w, patched))).To(Equal([]string{"SetLifecycle p2", "MarkNotReady p1"}))
}
