// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// kindMutants are bugs of the kinds that people report of operators like this one, one of
// each. The tests of their own package find them.
var kindMutants = []mutant{
	{
		// All of no pods are updated: what a partition keeps is forgotten over a night at 0.
		"kind-all-of-nothing", "controllers/cloneset/rollout.go",
		"return replicas > 0 && !s.set.HasPartition() && ",
		"return ",
	},
	{
		// Nothing looks again when only time ends a wait.
		"kind-no-timer", "inplace/plan.go",
		"\tp.recheckAt(v.Step.Until)\n",
		"",
	},
	{
		// A pod is deleted although the API server would accept no other one.
		"kind-deleted-unasked", "controllers/executor/successor.go",
		"case !move.Step.Evict && !s.workload.Unasked:",
		"case false:",
	},
	{
		// Kubernetes is let delete a pod although the API server would accept no other one.
		"kind-released-unasked", "controllers/native/kept.go",
		"if s.kept == nil {",
		"if s.kept = nil; s.kept == nil {",
	},
	{
		// A pod of an earlier revision is made again with the claims of another one.
		"kind-claims-of-another", "inplace/successor.go",
		"\tif revision.ClaimTemplates == nil {\n",
		"\tif len(revision.ClaimTemplates) >= 0 {\n",
	},
	{
		// A restart leaves the containers that admission has put into the pod.
		"kind-injection-ignored", "controllers/executor/injection.go",
		"if words, until := j.lacks(pods[i]); words != \"\" {",
		"if words, until := j.lacks(pods[i]); words == \"-\" {",
	},
	{
		// A pod that serves is deleted to be made again, while another one may not be made yet.
		"kind-deleted-while-missing", "inplace/plan.go",
		"case p.workload.Withheld > 0 && v.Step.Deletes():",
		"case false:",
	},
	{
		// A message names a pod that only waits for its turn, and not the one that is in the way.
		"kind-words", "controllers/workload/report.go",
		"|| turns.Has(plan.Blockers[0].Reason) {",
		"|| !turns.Has(plan.Blockers[0].Reason) {",
	},
}
