// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/controllers/workload"
)

// Each row has more to be done than the next one, which is told of only when that is done.
func TestTheFirstThingToDoIsTold(t *testing.T) {
	moves, rests, ready := Progress{Moving: true}, Progress{}, Progress{Ready: true}
	for name, test := range map[string]struct {
		change  func(*Standing)
		want    Progress
		reason  string
		message string
	}{
		"a pod is missing":             {func(s *Standing) { s.Existing, s.Available, s.Pending = 3, 3, 2 }, moves, "Scaling", "3 of 4 pods exist"},
		"a pod more is wanted":         {func(s *Standing) { s.Wanted, s.Pending = 5, 2 }, moves, "Scaling", "4 of 5 pods exist"},
		"a pod leaves":                 {func(s *Standing) { s.Leaving, s.Pending = 1, 2 }, moves, "Scaling", "1 pod is to be deleted"},
		"pods are to be updated":       {func(s *Standing) { s.Pending, s.Available, s.Kept = 2, 3, 1 }, moves, "Updating", "2 of 3 pods are to be updated to revision web-2"},
		"they are paused":              {func(s *Standing) { s.Pending, s.Paused = 2, true }, rests, "Paused", "paused with 2 pods to update"},
		"they wait to be deleted":      {func(s *Standing) { s.Pending, s.OnDelete = 2, true }, ready, "OnDelete", "2 pods"},
		"of those, one does not serve": {func(s *Standing) { s.Pending, s.OnDelete, s.Available = 2, true, 3 }, moves, "Updating", "3 of 4 pods are available"},
		"a pod does not serve, and claims move": {func(s *Standing) {
			s.Available, s.Claims = 3, workload.ClaimCounts{Moving: 1}
		}, moves, "Updating", "3 of 4 pods are available"},
		"a pod does not serve, and a claim is blocked": {func(s *Standing) {
			s.Available, s.Claims = 3, workload.ClaimCounts{Blocked: 1}
		}, moves, "Updating", "3 of 4 pods are available"},
		"claims move":                             {func(s *Standing) { s.Claims, s.Kept = workload.ClaimCounts{Moving: 2, Blocked: 1}, 1 }, moves, "UpdatingClaims", "2 claims are on their way to their templates, 1 are blocked"},
		"claims are blocked":                      {func(s *Standing) { s.Claims = workload.ClaimCounts{Blocked: 1, Message: "no"} }, rests, "ClaimsBlocked", "1 claims do not follow their templates: no"},
		"the partition keeps one":                 {func(s *Standing) { s.Kept = 1 }, ready, "PartitionReached", "partition keeps 1 pod at its revision"},
		"something else keeps one":                {func(s *Standing) { s.Kept, s.Keeper = 1, "selector of nodes" }, ready, "PartitionReached", "selector of nodes keeps 1 pod at its revision"},
		"the partition keeps nodes without a pod": {func(s *Standing) { s.Vacant = 2 }, ready, "PartitionReached", "partition keeps 2 of the nodes without a pod"},
		"the partition keeps pods, and nodes without one": {func(s *Standing) { s.Kept, s.Vacant = 2, 1 }, ready, "PartitionReached",
			"partition keeps 2 pods at their revision, 1 of the nodes without a pod"},
		"nothing is to be done": {func(*Standing) {}, ready, "Available", "4 pods are available"},
		"there are to be none":  {func(s *Standing) { *s = Standing{} }, ready, "Available", "0 pods are available"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			standing := Standing{Replicas: 4, Wanted: 4, Existing: 4, Available: 4, Revision: "web-2"}
			test.change(&standing)
			p := (&Round{}).Progress(standing)
			g.Expect(p.Reason).To(Equal(test.reason))
			g.Expect(p.Message).To(HavePrefix(test.message))
			p.Reason, p.Message = "", ""
			g.Expect(p).To(Equal(test.want))
		})
	}
}
