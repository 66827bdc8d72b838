// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

// Kubernetes recreates the pods of a workload, but for those that its spec keeps.
func TestPlannedByKubernetes(t *testing.T) {
	rolling := func(partition, start int32) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
			Ordinals: &appsv1.StatefulSetOrdinals{Start: start},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(partition)},
			},
		}}
	}
	for name, test := range map[string]struct {
		object client.Object
		ways   []report.Way
	}{
		"Deployment":                    {&appsv1.Deployment{}, []report.Way{report.Recreate, report.Recreate}},
		"paused Deployment":             {&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}, []report.Way{report.Kept, report.Kept}},
		"StatefulSet":                   {&appsv1.StatefulSet{}, []report.Way{report.Recreate, report.Recreate}},
		"StatefulSet with a partition":  {rolling(10, 0), []report.Way{report.Kept, report.Recreate}},
		"StatefulSet that starts later": {rolling(1, 9), []report.Way{report.Kept, report.Recreate}},
		"StatefulSet OnDelete": {
			&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}}},
			[]report.Way{report.Kept, report.Kept},
		},
		"DaemonSet OnDelete": {
			&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}}},
			[]report.Way{report.Kept, report.Kept},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pods := []*corev1.Pod{
				{ObjectMeta: metav1.ObjectMeta{Name: "db-10"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "db-9"}},
			}

			view, err := kinds.Read(test.object)
			g.Expect(err).NotTo(HaveOccurred())
			planned := report.ByKubernetes(view, pods, "a field cannot change in place")

			g.Expect(planned).To(HaveLen(2))
			g.Expect([]string{planned[0].Name, planned[1].Name}).To(Equal([]string{"db-9", "db-10"}))
			g.Expect([]report.Way{planned[0].Way, planned[1].Way}).To(Equal(test.ways))
			for _, pod := range planned {
				g.Expect(pod.Reason).NotTo(BeEmpty())
				g.Expect(pod.Message).NotTo(BeEmpty())
			}
		})
	}
}

// A pod whose claim is recreated is deleted for that, also while the first snapshot is
// taken and the pod runs.
func TestPlannedPodOfAClaimThatIsRecreated(t *testing.T) {
	g := NewWithT(t)
	template, err := inplace.NewTemplate(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}})
	g.Expect(err).NotTo(HaveOccurred())
	target := inplace.Target{Revision: inplace.Revision{Name: "r2", Template: template}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0"}}
	facts := inplace.PodFacts{
		Pod: builders.Pod("db-0", "r1", "nginx:1").Build(), From: &inplace.Revision{Name: "r1", Template: template},
		Claims: volumes.Claims{{State: volumes.Changing, Claim: claim, Recreates: true, Reason: "TakingSnapshot", Message: "claim data-db-0: is recreated"}},
	}
	w := inplace.Workload{Target: target, Replicas: 1, MaxUnavailable: 1, Pods: []inplace.PodFacts{facts}}

	planned := report.PlannedPods(w, inplace.MakePlan(w, now), now)
	claims := report.PlannedClaims(w)

	g.Expect(planned).To(ConsistOf(And(HaveField("Way", report.Recreate), HaveField("Reason", "TakingSnapshot"))))
	g.Expect(claims).To(ConsistOf(And(HaveField("Change", "recreated"), HaveField("Blocked", false))))

	w.Pods[0].Claims = nil
	g.Expect(report.PlannedPods(w, inplace.MakePlan(w, now), now)).To(ConsistOf(HaveField("Way", report.Unchanged)), "nothing but its label changes")
}

// A new pod is made beside one that stays until then.
func TestPlannedPodOfASurge(t *testing.T) {
	for name, tc := range map[string]struct {
		surges bool
		way    report.Way
	}{"its turn comes": {true, report.Recreate}, "the partition keeps it": {false, report.Kept}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := inplace.Workload{Replicas: 1, Pods: []inplace.PodFacts{{Pod: builders.Pod("agent-a", "r1", "nginx:1").Build(), Held: true, Surges: tc.surges}}}
			plan := inplace.Plan{Pods: []inplace.PodState{{Pod: w.Pods[0].Pod}}}
			g.Expect(report.PlannedPods(w, plan, now)).To(ConsistOf(HaveField("Way", tc.way)))
			plan.Pods[0].Updated = true
			g.Expect(report.PlannedPods(w, plan, now)).To(ConsistOf(HaveField("Way", report.Unchanged)))
		})
	}
}

// The plan says which pods are drained, and why one is not.
func TestPlannedPodThatCannotBeDrained(t *testing.T) {
	cannot := &inplace.Refusal{Reason: inplace.ReasonCannotDrain, Message: "no policy acts"}
	for name, tc := range map[string]struct {
		cannotDrain *inplace.Refusal
		keepReady   []string
		pod         *builders.PodBuilder
		drains      bool
		message     string
	}{
		"the label is heeded":                      {nil, nil, builders.Pod("db-0", "r1", "nginx:1"), true, ""},
		"the label is not heeded":                  {cannot, nil, builders.Pod("db-0", "r1", "nginx:1"), false, "; not drained: no policy acts"},
		"nor is it, but the pod has the gate":      {cannot, nil, builders.Pod("db-0", "r1", "nginx:1").Gated(corev1.ConditionTrue, now), true, ""},
		"nor is it, but the pod is out of service": {cannot, nil, builders.Pod("db-0", "r1", "nginx:1").Ready(false, now), true, ""},
		"keepReady names the container":            {nil, []string{"main"}, builders.Pod("db-0", "r1", "nginx:1"), false, "; not drained: keepReady names main"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			old, err := inplace.NewTemplate(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}})
			g.Expect(err).NotTo(HaveOccurred())
			next, err := inplace.NewTemplate(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:2"}}}})
			g.Expect(err).NotTo(HaveOccurred())
			w := inplace.Workload{
				Target: inplace.Target{
					Revision: inplace.Revision{Name: "r2", Template: next}, Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
					KeepReady: tc.keepReady, CannotDrain: tc.cannotDrain,
				},
				Replicas: 1, MaxUnavailable: 1,
				Pods: []inplace.PodFacts{{Pod: tc.pod.Build(), From: &inplace.Revision{Name: "r1", Template: old}}},
			}
			plan := inplace.MakePlan(w, now)
			plan.CannotDrain = tc.cannotDrain // as a dry run has found it

			planned := report.PlannedPods(w, plan, now)

			g.Expect(planned).To(ConsistOf(And(HaveField("Way", report.InPlace), HaveField("Drains", tc.drains),
				HaveField("Message", "image of main: nginx:1 to nginx:2"+tc.message))))
		})
	}
}
