// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// scopeOf returns what is known of a set with pods on nodes, at the revisions old and new.
func scopeOf(t *testing.T, pods []*corev1.Pod, nodes ...corev1.Node) *scope {
	t.Helper()
	var list []appsv1.ControllerRevision
	for _, hash := range []string{"old", "new"} {
		list = append(list, appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "agent-" + hash, Labels: map[string]string{appsv1beta1.ControllerRevisionHashLabel: hash}},
			Data:       runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"app","image":"app:` + hash + `"}]}}}}`)},
		})
	}
	revisions, err := history.Read(list)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s := newScope(&appsv1beta1.DaemonSet{}, now)
	s.selector, s.Revisions.ByHash, s.Revisions.History = labels.Everything(), true, revisions
	s.Revisions.Update, s.Revisions.Current = revisions.Get("agent-new"), revisions.Get("agent-old")
	s.Pods = pods
	s.locate(nodes)
	return s
}

// planOf returns what is planned for the pods that stay.
func planOf(t *testing.T, s *scope, surges int) inplace.Plan {
	t.Helper()
	s.placed = planNodes(placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now, surges: surges})
	s.takeTurns("new")
	asked := inplace.Workload{Target: s.target(), MaxUnavailable: 1}
	NewWithT(t).Expect((&Reconciler{}).describe(t.Context(), s, &asked)).To(Succeed())
	s.Plan = inplace.MakePlan(asked, now)
	return s.Plan.Reworded(s.blockers())
}

func maintainedNode(name string) corev1.Node {
	node := nodeNamed(name, nil)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue}}
	return *node
}

// neverServed has the readiness gate that the operator opens, and it is closed still.
func neverServed(pod *corev1.Pod) {
	unready(pod)
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}
}

func steps(plan inplace.Plan) []string {
	var found []string
	for _, move := range plan.Moves {
		found = append(found, string(move.Step.Action)+" "+move.Pod.Name)
	}
	return found
}

// The new pod of a surge is to serve, so that the old one may go.
func TestNewPodOfASurgeBeginsToServe(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(t, []*corev1.Pod{podOn("a", "x", "old", 60), changed(podOn("a", "y", "new", 5), neverServed)}, *nodeNamed("a", nil))
	s.set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSetStrategy{MaxSurge: ptr.To(intstr.FromInt32(1))}
	g.Expect(steps(planOf(t, s, 1))).To(ConsistOf("MarkReady y"))
}

// While a node is maintained, its pod is not updated. It serves: also a new one, and one that was
// drained for its update.
func TestPodOfAMaintainedNodeServes(t *testing.T) {
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		steps []string
		waits bool
	}{
		"an old one": {pod: podOn("a", "x", "old", 60), waits: true},
		"a new one":  {pod: changed(podOn("a", "x", "new", 5), neverServed), steps: []string{"MarkReady x"}},
		"one that is to be updated, and never served": {pod: changed(podOn("a", "x", "old", 5), neverServed), steps: []string{"MarkReady x"}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := scopeOf(t, []*corev1.Pod{test.pod, podOn("b", "y", "old", 60)}, maintainedNode("a"), *nodeNamed("b", nil))
			plan := planOf(t, s, 0)
			g.Expect(steps(plan)).To(ConsistOf(append(test.steps, "Recreate y")), "it uses up no budget")
			waits := ContainElement(And(HaveField("Pod", test.pod), HaveField("Reason", inplace.ReasonNodeUnavailable)))
			if !test.waits {
				waits = Not(waits)
			}
			g.Expect(plan.Blockers).To(waits)
		})
	}
}

// A pod whose kubelet is silent waits for its node, which is why it is not ready. On a node that is
// maintained, it has a reason of its own.
func TestPodThatIsNotReadyWaitsForItsNode(t *testing.T) {
	silent := *nodeNamed("a", nil)
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	for reason, node := range map[string]corev1.Node{inplace.ReasonNodeUnavailable: silent, inplace.ReasonPodNotReady: maintainedNode("a")} {
		t.Run(reason, func(t *testing.T) {
			s := scopeOf(t, []*corev1.Pod{changed(podOn("a", "x", "old", 60), unready)}, node)
			NewWithT(t).Expect(planOf(t, s, 0).Blockers).To(ConsistOf(HaveField("Reason", reason)))
		})
	}
}

// A pod that the partition keeps, or that no update may reach, waits for no node.
func TestPodThatIsKeptWaitsForNoNode(t *testing.T) {
	g := NewWithT(t)
	pods := []*corev1.Pod{podOn("a", "x", "old", 60), podOn("b", "y", "old", 60)}
	s := scopeOf(t, pods, maintainedNode("a"), *nodeNamed("b", nil))
	g.Expect(planOf(t, s, 0).Blockers).To(ContainElement(HaveField("Pod", pods[0])))

	s.selector = labels.Nothing()
	g.Expect(planOf(t, s, 0).Blockers).To(BeEmpty())

	s.selector, s.set.Spec.UpdateStrategy.Type = labels.Everything(), appsv1.OnDeleteDaemonSetStrategyType
	g.Expect(planOf(t, s, 0).Blockers).To(BeEmpty())
}

// On a node whose taint keeps new pods away, no second pod can be made beside an old one: a surge
// recreates it as any other update does.
func TestSurgeRecreatesThePodOfATaintedNode(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	s := scopeOf(t, []*corev1.Pod{podOn("a", "x", "old", 60), podOn("b", "y", "old", 60)}, *nodeNamed("a", nil), *nodeNamed("b", nil, taint))
	s.set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSetStrategy{MaxSurge: ptr.To(intstr.FromInt32(1))}
	NewWithT(t).Expect(steps(planOf(t, s, 1))).To(ConsistOf("Recreate y"))
}
