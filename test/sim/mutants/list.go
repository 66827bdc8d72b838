// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// mutant is a bug: in file, what is right is replaced by what is wrong.
type mutant struct {
	name  string
	file  string
	right string
	wrong string
}

// mutants are bugs that this kind of program has had, here or elsewhere.
var mutants = []mutant{
	{
		// A pod that was changed meanwhile gets the label of a revision it does not run.
		"patch-without-version", "inplace/patch.go",
		"UID: string(pod.UID), ResourceVersion: pod.ResourceVersion,",
		"UID: string(pod.UID),",
	},
	{
		// A pod whose container is about to be stopped goes back into service.
		"ready-without-version", "inplace/patch.go",
		"metadata.ResourceVersion = pod.ResourceVersion",
		"_ = pod.ResourceVersion",
	},
	{
		// A container that crashed just before the change counts as restarted for it.
		"any-new-container-is-proof", "inplace/completion.go",
		"case newID && (settled || reportsGeneration && e.provesRestart(started, changed)):",
		"case newID:",
	},
	{
		// The statuses are those from before the kubelet saw the change.
		"generation-not-awaited", "inplace/completion.go",
		"e.observed = !reportsGeneration || pod.Status.ObservedGeneration >= pod.Generation",
		"e.observed = true",
	},
	{
		// Two names of one content: the rollout hangs for ever.
		"image-id-must-change", "inplace/completion.go",
		"newID := e.status.ContainerID != \"\" && e.status.ContainerID != e.entry.ContainerID",
		"newID := e.status.ContainerID != \"\" && e.status.ContainerID != e.entry.ContainerID && e.status.ImageID != e.entry.ImageID",
	},
	{
		// A rollback that overtakes the kubelet waits for a restart that never comes.
		"rollback-never-done", "inplace/completion.go",
		"fromPresent := sameID && e.entry.Image == e.image",
		"fromPresent := false && sameID && e.entry.Image == e.image",
	},
	{
		// A change that the kubelet may still act on is forgotten.
		"superseded-change-forgotten", "inplace/record.go",
		"entry.Superseding = !earlier.imageFailed",
		"entry.Superseding = false",
	},
	{
		// Traffic still reaches the container that is stopped.
		"endpoints-not-awaited", "inplace/next.go",
		"if len(facts.Services) > 0 {",
		"if len(facts.Services) > 99 {",
	},
	{
		"kubelet-not-awaited", "inplace/next.go",
		"if condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {",
		"if false && condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {",
	},
	{
		"grace-period-ignored", "inplace/next.go",
		"now.Before(until) {\n\t\tstep.State, step.Reason, step.Until = Grace",
		"false {\n\t\tstep.State, step.Reason, step.Until = Grace",
	},
	{
		// One pod more than the budget.
		"budget-off-by-one", "inplace/plan.go",
		"default:\n\t\tif p.unavailable >= limit {",
		"default:\n\t\tif p.unavailable > limit {",
	},
	{
		// A revision that never becomes ready cannot be left.
		"broken-pods-wait", "inplace/plan.go",
		"case v.class == broken:",
		"case v.class == broken && p.unavailable <= limit-1:",
	},
	{
		// What was drained for a revision that nobody wants any more stays drained.
		"drained-and-forgotten", "inplace/next.go",
		"if needsMarkReady(pod) {",
		"if needsMarkReady(pod) && UpdatedInPlace(pod) {",
	},
	{
		// A pod that the partition holds comes back at the new revision.
		"partition-forgets-new-pods", "controllers/statefulset/scope.go",
		"if s.held.Has(ordinal) {",
		"if s.held.Has(ordinal) && len(s.members) == len(s.ordinals) {",
	},
	{
		// A pod that was made again meanwhile is deleted in place of another.
		"delete-without-preconditions", "controllers/executor/executor.go",
		"client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}",
		"client.Preconditions{}",
	},
	{
		// The history is cut before the status says that a revision is not needed.
		"late-truncation", "controllers/statefulset/rollout.go",
		"if s.isUpdated() {",
		"if false && s.isUpdated() {",
	},
	{
		// Nobody comes back to a pod whose update takes time.
		"no-recheck", "controllers/statefulset/rollout.go",
		"if !s.plan.Recheck.IsZero() {",
		"if false && !s.plan.Recheck.IsZero() {",
	},
	{
		// A conflict is taken for the end of it.
		"conflict-not-retried", "controllers/statefulset/rollout.go",
		"if result.Conflicts > 0 || result.Refused > 0 {",
		"if result.Conflicts > 99 || result.Refused > 0 {",
	},
}
