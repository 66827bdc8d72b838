// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// Kubernetes sees each kind late, in its turn: every rollout keeps the pods that it keeps
// otherwise, and ends as it does.
func TestNativeRolloutsSeenLate(t *testing.T) {
	t.Parallel()
	for _, r := range nativeRollouts {
		for _, kind := range lateKinds {
			t.Run(fmt.Sprintf("%s/%s", r.name, kind), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				w, before := r.beginLate(g, kind)
				r.rest(g, w, kind)
				outcome := r.outcome(w, before)
				g.Expect(outcome).To(HavePrefix(fmt.Sprintf("%d kept", r.kept)), w.story.String())
				g.Expect(strings.TrimSuffix(outcome, "; "+r.history)).NotTo(Equal(outcome), "%s\n%s", outcome, w.story)
			})
		}
	}
}

// lateBy is how late a kind is seen in tables, in seconds.
const lateBy = 4

// beginLate is begin where Kubernetes sees a kind late.
func (r nativeRollout) beginLate(g Gomega, kind string) (*World, map[types.UID]bool) {
	s := reference()
	s.late = late{on: true, by: map[string]int{kind: lateBy}}
	return r.beginWith(g, s)
}

// The template goes back before Kubernetes has seen that a pod went on: that pod is kept.
func TestNativeUpdatesThatGoBackUnseen(t *testing.T) {
	for _, r := range nativeRollouts {
		if r.name != "StatefulSet, a label" && r.name != "DaemonSet, a label" {
			continue
		}
		g := NewWithT(t)
		w, before := r.beginLate(g, "Pod")
		for !slices.ContainsFunc(w.native.pods(), func(pod *corev1.Pod) bool { return pod.Labels["tier"] != "" }) {
			w.step()
		}
		w.native.to(nativeRevisionNamed("a"))
		r.rest(g, w, "back")
		g.Expect(r.outcome(w, before)).To(HavePrefix("3 kept"), w.story.String())
	}
}

// The Deployment itself is seen late: its history is what it is otherwise.
func TestNativeDeploymentsSeenLate(t *testing.T) {
	t.Skip("finding: a Deployment that its controller sees late")
	for _, r := range nativeRollouts {
		if r.kind == nativecontroller.Deployment {
			g := NewWithT(t)
			w, before := r.beginLate(g, "Deployment")
			r.rest(g, w, r.name)
			g.Expect(r.outcome(w, before)).To(HaveSuffix("; "+r.history), w.story.String())
		}
	}
}
