// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/kinds"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Pods of a workload of Kubernetes that start no update are kept by its annotations: of its
// strategy, the hold has made OnDelete, and a Deployment has no such thing.
func TestPlanNamesTheStrategyOfOurKindsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		changed client.Object
		notes   []string
	}{
		"ours":          {&appsv1beta1.CloneSet{}, []string{"updateStrategy OnDelete: pods get the new revision when they are deleted"}},
		"a Deployment":  {&appsv1.Deployment{}, nil},
		"a StatefulSet": {&appsv1.StatefulSet{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			view, err := kinds.Read(tc.changed)
			g.Expect(err).NotTo(HaveOccurred())
			p := &planner{found: Found{Kind: view.Kind}}
			g.Expect(p.take(workload.Inspection{Planned: true, Workload: inplace.Workload{Stopped: true}})).To(Succeed())
			g.Expect(p.plan.Notes).To(Equal(tc.notes))
		})
	}
}
