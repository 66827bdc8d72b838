// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"testing"
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// BenchmarkWantedPulls is what it costs in each pass to know which images nodes lack.
func BenchmarkWantedPulls(b *testing.B) {
	for _, pods := range []int{100, 5000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			a := newAdmission(b, pods)
			for i, facts := range a.workload.Pods {
				facts.Pod.Spec.NodeName = fmt.Sprintf("node-%d", i)
			}
			a.workload.Target.Pull = inplace.PullPolicy{Policy: appsv1beta1.RequireImagePull, Timeout: time.Hour}
			a.workload.MaxUnavailable = 1
			e := New(nil, nil, a.clock)
			e.Puller = &Puller{Kind: kind, Pulling: &Pulling{}}
			plan, known := inplace.MakePlan(a.workload, a.clock.Now()), e.memory.verdictsOn("uid", "b")
			for b.Loop() {
				newPulls(e, a.recorder.workload, a.workload, known, a.clock.Now()).want(plan)
			}
		})
	}
}
