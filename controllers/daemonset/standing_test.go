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

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/inplace"
)

// A node gets a taint that keeps new pods away. Its pod stays, and serves: the set is as ready as
// before, and its rollout ends when that pod is updated, too.
func TestPodOfATaintedNodeServes(t *testing.T) {
	g := NewWithT(t)
	revision := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "agent-new", Labels: map[string]string{appsv1beta1.ControllerRevisionHashLabel: "new"}}}
	revision.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"$patch":"replace","spec":{}}}}`)}
	revisions, err := history.Read([]appsv1.ControllerRevision{revision})
	g.Expect(err).NotTo(HaveOccurred())
	s := newScope(&appsv1beta1.DaemonSet{}, now)
	s.selector, s.Revisions.ByHash = labels.Everything(), true
	s.Revisions.Update, s.Revisions.Current = revisions.Get("agent-new"), revisions.Get("agent-new")
	s.Pods = []*corev1.Pod{podOn("node-1", "agent-1", "new", 9), podOn("node-2", "agent-2", "new", 9)}
	s.locate([]corev1.Node{*nodeNamed("node-1", nil), *nodeNamed("node-2", nil, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})})
	s.placed = planNodes(placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now})
	s.takeTurns("new")
	for _, pod := range s.Pods {
		s.Plan.Pods = append(s.Plan.Pods, inplace.PodState{Pod: pod, Proved: true, Updated: true, Ready: true, Available: true})
	}
	s.count()
	g.Expect(s.isUpdated()).To(BeTrue())

	s.setCounts(&s.set.Status)
	g.Expect(s.set.Status.NumberMisscheduled).To(BeEquivalentTo(1))
	g.Expect(s.set.Status.NumberAvailable).To(BeEquivalentTo(1), "of the nodes that are to run a pod")
	g.Expect(s.Progress(s.standing())).To(Equal(engine.Progress{Ready: true, Reason: appsv1beta1.ReasonAvailable, Message: "2 pods are available"}))

	s.Plan.Pods[0].Updated = false
	s.count()
	g.Expect(s.isUpdated()).To(BeFalse(), "the pod of the node that is to run one is not updated")
	s.Plan.Pods[0].Updated, s.Plan.Pods[1].Updated = true, false
	s.count()
	g.Expect(s.isUpdated()).To(BeFalse(), "the pod of the tainted node is not updated")
}
