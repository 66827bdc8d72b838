// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

const (
	ours   = `{"userAgent":"Lifecycle","key":"preUpdateHook"}`
	theirs = `{"userAgent":"ContainerRecreateRequest","key":"ns/crr"}`
)

// kruiseGated has the gate KruisePodReady only, kept False by those in the list;
// True without any, and unset if the list is "".
func kruiseGated(list string) *builders.PodBuilder {
	return builders.Pod("sample-0", "a", alpineImage).With(func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.KruisePodReady}}
		status := corev1.ConditionFalse
		switch list {
		case "":
			return
		case "[]":
			status, list = corev1.ConditionTrue, ""
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: appsv1beta1.KruisePodReady, Status: status, Message: list, LastTransitionTime: metav1.NewTime(after(-20)),
		})
	})
}

func TestSeveralKeepAPodOutOfService(t *testing.T) {
	for name, tc := range map[string]struct {
		list, key string
		want      string
		status    corev1.ConditionStatus
		moved     bool
	}{
		"no client yet":                   {"", "", "", corev1.ConditionTrue, true},
		"we, first":                       {"[]", notReadyKeyUpdate, "[" + ours + "]", corev1.ConditionFalse, true},
		"we, after others":                {"[" + theirs + "]", notReadyKeyUpdate, "[" + theirs + "," + ours + "]", corev1.ConditionFalse, false},
		"we, again":                       {"[" + theirs + "," + ours + "]", notReadyKeyUpdate, "[" + theirs + "," + ours + "]", corev1.ConditionFalse, false},
		"we are done, others not":         {"[" + theirs + "," + ours + "]", "", "[" + theirs + "]", corev1.ConditionFalse, false},
		"all are done":                    {"[" + ours + "]", "", "", corev1.ConditionTrue, true},
		"a client that writes plain text": {"broken", notReadyKeyUpdate, `[` + ours + `,{"userAgent":"unknown","key":"broken"}]`, corev1.ConditionFalse, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			condition := withNotReady(kruiseGated(tc.list).Build(), tc.key, metav1.NewTime(patched))
			g.Expect(condition.Status).To(Equal(tc.status))
			if tc.want == "" {
				g.Expect(condition.Message).To(BeEmpty())
			} else {
				g.Expect(condition.Message).To(MatchJSON(tc.want))
			}
			g.Expect(condition.LastTransitionTime.Time.Equal(patched)).To(Equal(tc.moved), "the status changed")
		})
	}
}

// A pod without InPlaceUpdateReady is drained by KruisePodReady, if the user asks
// for that.
func TestMarkPodNotReadyDrains(t *testing.T) {
	g := NewWithT(t)
	marking := appsv1beta1.Lifecycle{InPlaceUpdate: &appsv1beta1.LifecycleHook{MarkPodNotReady: true}}

	pod := kruiseGated("[" + theirs + "]").Build()
	pod.Status.Conditions[0].Status = corev1.ConditionTrue
	step := nextOf(t, pod, marking, latestImage)
	g.Expect(step.Action).To(Equal(MarkNotReady))
	body, err := ReadinessPatch(pod, step, metav1.NewTime(patched))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(ContainSubstring(`"resourceVersion":"1"`), "what others wrote must not be lost")
	g.Expect(string(body)).NotTo(ContainSubstring("InPlaceUpdateReady"))
	marked := mergePod(t, pod, body)
	g.Expect(IsMarkedNotReady(marked)).To(BeTrue())

	g.Expect(nextOf(t, marked, marking, latestImage).Reason).To(Equal(ReasonStillReady))
	drained := kruiseGated("["+ours+"]").Ready(false, after(-10)).Build()
	g.Expect(unreadySince(drained)).To(Equal(after(-10)))
	g.Expect(nextOf(t, drained, marking, latestImage).Action).To(Equal(Patch))

	back := finishOf(observedOf(drained, patched), Target{Lifecycle: &marking}, patched)
	g.Expect(back.Action).To(Equal(MarkReady))
	body, err = ReadinessPatch(drained, back, metav1.NewTime(patched))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(IsMarkedNotReady(mergePod(t, drained, body))).To(BeFalse())

	unasked := kruiseGated("[]").Build()
	g.Expect(DrainsByLabel(unasked, nextOf(t, unasked, appsv1beta1.Lifecycle{}, latestImage))).To(BeTrue(), "its gate is not for this")
	g.Expect(finishOf(observedOf(kruiseGated("["+theirs+"]").Build(), patched), Target{}, patched).Action).To(Equal(Wait), "others keep it out")
	g.Expect(finishOf(observedOf(kruiseGated("").Build(), patched), Target{}, patched).Action).To(Equal(MarkReady), "the manager has to say that it may serve")
}

func TestPrepareNew(t *testing.T) {
	fresh := func(lifecycle *appsv1beta1.Lifecycle, finalizers ...string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
		PrepareNew(pod, Target{Policy: reCreate, Lifecycle: lifecycle}, patched)
		return pod
	}
	g := NewWithT(t)
	g.Expect(fresh(nil)).To(Equal(&corev1.Pod{}))
	g.Expect(fresh(&appsv1beta1.Lifecycle{}).Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "Normal"))
	held := &appsv1beta1.Lifecycle{PreNormal: hook(false), InPlaceUpdate: &appsv1beta1.LifecycleHook{MarkPodNotReady: true}}
	g.Expect(fresh(held).Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "PreparingNormal"))
	g.Expect(fresh(held, drainFinalizer).Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "Normal"))
	g.Expect(fresh(held).Spec.ReadinessGates).To(ConsistOf(corev1.PodReadinessGate{ConditionType: appsv1beta1.KruisePodReady}))
	g.Expect(fresh(&appsv1beta1.Lifecycle{PreNormal: hook(true)}).Spec.ReadinessGates).To(BeEmpty(), "marking has no effect in preNormal")
}

// As OpenKruise, Insitu names the state of a CloneSet's pod also where the set has no
// hooks: it becomes normal when it has a node. Where a gate is to be opened, the same write says so.
func TestNewPodsNameTheirState(t *testing.T) {
	withHooks := &appsv1beta1.Lifecycle{PreDelete: hook(false)}
	for name, tc := range map[string]struct {
		policy    appsv1beta1.PodUpdateStrategyType
		lifecycle *appsv1beta1.Lifecycle
		action    Action
	}{
		"updated in place":           {inPlaceIfPossible, nil, MarkReady},
		"recreated":                  {reCreate, nil, SetLifecycle},
		"updated in place, by hooks": {inPlaceIfPossible, withHooks, MarkReady},
		"recreated, by hooks":        {reCreate, withHooks, SetLifecycle},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := settledPod().Ready(false, after(0)).Build()
			if tc.action == MarkReady {
				withoutCondition(appsv1beta1.InPlaceUpdateReady)(pod)
			}
			target := Target{Revision: Revision{Name: "a"}, Policy: tc.policy, Lifecycle: tc.lifecycle, ShowsState: true}
			PrepareNew(pod, target, after(0))
			g.Expect(pod.Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, "PreparingNormal"))
			g.Expect(Next(PodFacts{Pod: pod}, target, after(1)).Action).To(Equal(Wait))

			pod.Spec.NodeName = "node-1"
			g.Expect(Next(PodFacts{Pod: pod}, target, after(2))).To(And(
				HaveField("Action", tc.action), HaveField("Lifecycle", appsv1beta1.LifecycleStateNormal)))
		})
	}
}

// Pods that are updated in place are taken out of service for it, also where their
// template lists no gate. The template itself stays what it is.
func TestNewPodsHaveTheGate(t *testing.T) {
	ours := corev1.PodReadinessGate{ConditionType: appsv1beta1.InPlaceUpdateReady}
	theirs := corev1.PodReadinessGate{ConditionType: "example.io/ready"}
	for name, tc := range map[string]struct {
		policy       appsv1beta1.PodUpdateStrategyType
		listed, want []corev1.PodReadinessGate
	}{
		"none listed":    {inPlaceIfPossible, nil, []corev1.PodReadinessGate{ours}},
		"in place only":  {inPlaceOnly, nil, []corev1.PodReadinessGate{ours}},
		"another listed": {inPlaceIfPossible, []corev1.PodReadinessGate{theirs}, []corev1.PodReadinessGate{theirs, ours}},
		"listed":         {inPlaceIfPossible, []corev1.PodReadinessGate{ours, theirs}, []corev1.PodReadinessGate{ours, theirs}},
		"recreated":      {reCreate, []corev1.PodReadinessGate{theirs}, []corev1.PodReadinessGate{theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			template := append(make([]corev1.PodReadinessGate, 0, 4), tc.listed...)
			pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: template}}
			PrepareNew(pod, Target{Policy: tc.policy}, patched)
			NewWithT(t).Expect(pod.Spec.ReadinessGates).To(Equal(tc.want))
			NewWithT(t).Expect(template[:cap(template)][len(tc.listed)]).To(BeZero(), "the template's list is not written to")
		})
	}
}
