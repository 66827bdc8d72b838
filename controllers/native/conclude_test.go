// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// A hold ends when Kubernetes counts all pods that were updated, and not before: what it
// still sees at another revision it would delete. Pods that end do not count, those that
// are to be deleted do.
func TestHoldsEndWhenKubernetesCountsTheUpdatedPods(t *testing.T) {
	s := &scope{target: &inplace.Revision{Name: "new"}, history: &history.History{}}
	for _, pod := range []metav1.ObjectMeta{
		{Name: "web-0", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "old"}},
		{Name: "web-1", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}},
		{Name: "web-2", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}},
		{Name: "web-3", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}, DeletionTimestamp: ptr.To(metav1.Now())},
	} {
		s.pods = append(s.pods, inplace.PodFacts{Pod: &corev1.Pod{ObjectMeta: pod}})
	}
	s.condemned = append(s.condemned, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}}})
	unseen := metav1.ObjectMeta{Generation: 1}
	for counted, ends := range map[int32]bool{0: false, 1: false, 2: false, 3: true, 4: true} {
		for _, w := range []workload{
			statefulSet{&appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{UpdatedReplicas: counted}}},
			daemonSet{&appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{UpdatedNumberScheduled: counted}}},
		} {
			concluded, err := w.conclude(t.Context(), nil, s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(concluded).To(Equal(ends), "%T: %d are counted", w, counted)
		}
		for _, w := range []workload{
			statefulSet{&appsv1.StatefulSet{ObjectMeta: unseen, Status: appsv1.StatefulSetStatus{UpdatedReplicas: counted}}},
			daemonSet{&appsv1.DaemonSet{ObjectMeta: unseen, Status: appsv1.DaemonSetStatus{UpdatedNumberScheduled: counted}}},
		} {
			concluded, err := w.conclude(t.Context(), nil, s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(concluded).To(BeFalse(), "%T: what is counted is of another generation", w)
		}
		for kept, isSeen := range map[string]bool{"": false, "6": false, "7": ends, "8": false, "all": false} {
			held := metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{native.HeldObservedGenerationAnnotation: kept}}
			for _, w := range []workload{
				statefulSet{&appsv1.StatefulSet{ObjectMeta: held, Status: appsv1.StatefulSetStatus{ObservedGeneration: 6, UpdatedReplicas: counted}}},
				daemonSet{&appsv1.DaemonSet{ObjectMeta: held, Status: appsv1.DaemonSetStatus{ObservedGeneration: 6, UpdatedNumberScheduled: counted}}},
			} {
				concluded, err := w.conclude(t.Context(), nil, s)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(concluded).To(Equal(isSeen), "%T: by the annotation, %q is seen of 7", w, kept)
			}
		}
	}
}

// What nothing but a ContainerRecreateRequest asks for keeps no hold, and has no pod recreated: it is
// done after the hold. A pod that is out of service for it comes back first.
func TestRequestsKeepNoHold(t *testing.T) {
	asked := func(change func(*inplace.Step, *corev1.Pod)) *scope {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "web-0", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: "new"}},
			Spec: corev1.PodSpec{
				NodeName: "node-1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
			},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: appsv1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue}}},
		}
		step := inplace.Step{
			Action: inplace.MarkNotReady, OnRequest: true, LeadsToPatch: true, Change: inplace.Change{Images: []inplace.ImageChange{{Container: "main"}}},
		}
		change(&step, pod)
		s := &scope{kind: StatefulSet, target: &inplace.Revision{Name: "new"}, pods: []inplace.PodFacts{{Pod: pod}}}
		s.Owner = workloads.Owner{Object: &appsv1.StatefulSet{}}
		s.Plan = inplace.Plan{
			Pods: []inplace.PodState{{Pod: pod, Proved: pod.Name != "unproved", Updated: true, Step: step}}, Moves: []inplace.Move{{Pod: pod, Step: step}},
		}
		return s
	}
	for name, test := range map[string]struct {
		change              func(*inplace.Step, *corev1.Pod)
		isDone, isRecreated bool
	}{
		"it serves":                 {change: func(*inplace.Step, *corev1.Pod) {}, isDone: true},
		"it is at another revision": {change: func(_ *inplace.Step, pod *corev1.Pod) { pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "old" }},
		"it is not proved":          {change: func(_ *inplace.Step, pod *corev1.Pod) { pod.Name = "unproved" }},
		"it is out of service":      {change: func(_ *inplace.Step, pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"its revision asks, too":    {change: func(step *inplace.Step, _ *corev1.Pod) { step.OnRequest = false }, isRecreated: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(asked(test.change).isDone()).To(Equal(test.isDone))
			g.Expect(asked(test.change).recreation() != nil).To(Equal(test.isRecreated))
		})
	}
}

// A hold whose pods have to be recreated ends when the images of new ones are there. What waits for
// its turn, or for another reason, has nothing to do with images.
func TestRecreationWaitsForImages(t *testing.T) {
	pods := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "1"}}}
	for name, test := range map[string]struct {
		blockers []inplace.Blocker
		inPlace  bool
		ends     bool
	}{
		"nothing is in the way":             {ends: true},
		"one waits for its turn":            {blockers: []inplace.Blocker{{Pod: pods[0], Reason: inplace.ReasonBudget}}, ends: true},
		"the first one waits for images":    {blockers: []inplace.Blocker{{Pod: pods[0], Reason: inplace.ReasonBudget}, {Pod: pods[1], Reason: inplace.ReasonImagePull}}},
		"what goes in place waits for some": {blockers: []inplace.Blocker{{Pod: pods[1], Reason: inplace.ReasonImagePull}}, inPlace: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{kind: StatefulSet, target: &inplace.Revision{Name: "new"}}
			s.Owner = workloads.Owner{Object: &appsv1.StatefulSet{}}
			for i, pod := range pods {
				step := inplace.Step{Action: inplace.Recreate}
				if test.inPlace && i == 1 {
					step = inplace.Step{Action: inplace.MarkNotReady, LeadsToPatch: true}
				}
				s.pods = append(s.pods, inplace.PodFacts{Pod: pod})
				s.Plan.Pods = append(s.Plan.Pods, inplace.PodState{Pod: pod, Step: step})
			}
			s.Plan.Blockers = test.blockers
			NewWithT(t).Expect(s.recreation() != nil).To(Equal(test.ends))
		})
	}
}
