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

// mutants are bugs that this kind of program has had, here or elsewhere. The simulation
// finds them.
var mutants = []mutant{
	{
		// A pod that was changed meanwhile gets the label of a revision it does not run.
		"patch-without-version", "inplace/patch.go",
		"metadata.ResourceVersion = pod.ResourceVersion\n\tmetadata.Labels",
		"metadata.Labels",
	},
	{
		// A pod whose container is about to be stopped goes back into service.
		"ready-without-version", "inplace/patch.go",
		"metadata.ResourceVersion = pod.ResourceVersion\n\t}",
		"_ = pod.ResourceVersion\n\t}",
	},
	{
		// A container that crashed just before the change counts as restarted for it.
		"any-new-container-is-proof", "inplace/completion.go",
		"case e.status.ContainerID != e.entry.ContainerID && (settled || reportsGeneration && e.provesRestart(started, changed)):",
		"case e.status.ContainerID != e.entry.ContainerID:",
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
		"case e.status.ContainerID != e.entry.ContainerID && (settled || reportsGeneration && e.provesRestart(started, changed)):",
		"case e.status.ContainerID != e.entry.ContainerID && e.status.ImageID != e.entry.ImageID:",
	},
	{
		// A rollback that overtakes the kubelet waits for a restart that never comes.
		"rollback-never-done", "inplace/completion.go",
		"return e.entry.Image == e.image || e.entry.Image == \"\"",
		"return e.entry.Image == \"\"",
	},
	{
		// A change that the kubelet may still act on is forgotten.
		"superseded-change-forgotten", "inplace/record.go",
		"entry.Superseding = !earlier.imageFailed",
		"entry.Superseding = false",
	},
	{
		// Traffic still reaches the container that is stopped.
		"endpoints-not-awaited", "inplace/drain.go",
		"if len(s.facts.Services) > 0 {",
		"if len(s.facts.Services) > 99 {",
	},
	{
		"kubelet-not-awaited", "inplace/drain.go",
		"if condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {",
		"if false && condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {",
	},
	{
		"grace-period-ignored", "inplace/drain.go",
		"s.now.Before(until) {\n\t\tstep.State, step.Reason, step.Until = Grace",
		"false {\n\t\tstep.State, step.Reason, step.Until = Grace",
	},
	{
		// A pod that was drained by the label never serves again.
		"label-never-taken-off", "inplace/gate.go",
		"needsKruiseReady(pod) || isDrainedByLabel(pod)",
		"needsKruiseReady(pod)",
	},
	{
		// The drain of a pod is ended whose container is about to be stopped.
		"drain-ended-on-an-old-view", "inplace/drained.go",
		"metadata.ResourceVersion = pod.ResourceVersion",
		"metadata.ResourceVersion = \"\"",
	},
	{
		// A pod of Kubernetes is restarted in service.
		"undrained-restarts-of-kubernetes", "inplace/drain.go",
		"if !t.MustDrain || !isReady(pod)",
		"if t.MustDrain || !isReady(pod)",
	},
	{
		// A policy that comes later is never found: pods restart in service.
		"drain-verdict-kept-for-ever", "controllers/executor/drain.go",
		"if v.refused != nil && now.Before(v.refused.Until) {",
		"if v.refused != nil {",
	},
	{
		// One pod more than the budget.
		"budget-off-by-one", "inplace/plan.go",
		"case p.unavailable >= limit:\n\t\t\tp.block(v, Waiting, ReasonBudget",
		"case p.unavailable > limit:\n\t\t\tp.block(v, Waiting, ReasonBudget",
	},
	{
		// A revision that never becomes ready cannot be left.
		"broken-pods-wait", "inplace/plan.go",
		"case v.class == broken:\n\t\tp.move(v, \"broken: outside the budget\")",
		"case v.class == broken && p.unavailable <= limit-1:\n\t\tp.move(v, \"broken: outside the budget\")",
	},
	{
		// What was drained for a revision that the user no longer wants stays drained.
		"drained-and-forgotten", "inplace/finish.go",
		"if !needsMarkReady(pod) || s.target.awaitsNode(pod) {",
		"if !needsMarkReady(pod) || !UpdatedInPlace(pod) {",
	},
	{
		// A pod that the partition holds comes back at the new revision.
		"partition-forgets-new-pods", "controllers/statefulset/scope.go",
		"if s.held.Has(ordinal) {",
		"if s.held.Has(ordinal) && len(s.members) == s.replicas {",
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
		// The manager does not come back to a pod whose update takes time.
		"no-recheck", "controllers/engine/round.go",
		"if !r.Plan.Recheck.IsZero() {",
		"if false && !r.Plan.Recheck.IsZero() {",
	},
	{
		// A conflict is taken for the end of it.
		"conflict-not-retried", "controllers/executor/executor.go",
		"return r.Conflicts+r.Refused+r.Postponed > 0",
		"return r.Refused+r.Postponed > 0",
	},
	{
		// A pod is changed while its hook holds it.
		"hook-ignored", "inplace/lifecycle.go",
		"if hook == nil || change.isEmpty() {",
		"if hook == nil || !change.isEmpty() {",
	},
	{
		// A pod is deleted while its hook holds it.
		"deletion-hook-ignored", "inplace/lifecycle.go",
		"by := holding(hook, pod)\n\tif len(by) == 0 {",
		"by := holding(hook, pod)\n\tif len(by) < 99 {",
	},
	{
		// A pod that was held for an update which is not to be, is never released.
		"hold-not-taken-back", "inplace/lifecycle.go",
		"if state != wanted {",
		"if state != wanted && state != appsv1beta1.LifecycleStatePreparingUpdate {",
	},
	{
		// What others keep out of service for a reason of theirs goes into service.
		"strangers-dropped", "inplace/notready.go",
		"func(n notReadyEntry) bool { return n.UserAgent == notReadyAgent })\n\tif",
		"func(n notReadyEntry) bool { return true })\n\tif",
	},
	{
		// A container is changed while one that it needs is not ready.
		"batch-not-awaited", "inplace/batch.go",
		"live.name != \"\" && !live.status.Ready {",
		"live.name == \"?\" && !live.status.Ready {",
	},
	{
		// A container of a later batch keeps the old image.
		"batch-forgotten", "inplace/observed.go",
		"if progress.Next = o.next(); len(progress.Next) > 0 {",
		"if progress.Next = o.next(); len(progress.Next) > 99 {",
	},
	{
		// A container that reads what changed keeps the old value.
		"environment-left-alone", "inplace/restart.go",
		"restart := c.isAsked || change.Reads != \"\" || c.pending && c.alias",
		"restart := c.isAsked || c.pending && c.alias",
	},
	{
		// A container gets the spelling that it was started from, and is not restarted.
		"reference-not-avoided", "inplace/completion.go",
		"if e.isOpen() {\n\t\treferences.Insert",
		"if false {\n\t\treferences.Insert",
	},
	{
		// The restart of the update itself is not counted.
		"restarts-miscounted", "inplace/restartcount.go",
		"{Revision: revision, RestartCount: c.status.RestartCount}",
		"{Revision: revision, RestartCount: c.status.RestartCount + 1}",
	},
	{
		// Pods are taken out faster than a budget is counted.
		"budget-not-counted", "controllers/executor/turns.go",
		"countingPause = 5 * time.Second",
		"countingPause = 0 * time.Second",
	},
	{
		// A new image is given the digest of the one that runs still.
		"digest-of-before", "inplace/restart.go",
		"case e.isOpen() || e.imageFailed:",
		"case false:",
	},
	{
		// Pods that are too many go, whoever is left to serve.
		"clones-surplus-goes-at-once", "controllers/cloneset/scale_plan.go",
		"case spare > 0:",
		"case spare > -1:",
	},
	{
		// One pod more than maxSurge.
		"clones-surge-off-by-one", "controllers/cloneset/scale_plan.go",
		"surging := min(needed, f.surge)",
		"surging := min(needed, f.surge+min(f.surge, 1))",
	},
	{
		// One pod more is updated than the partition allows.
		"clones-partition-off-by-one", "controllers/cloneset/scale_plan.go",
		"workload.HeldByNumber(turns, vacant, replicas-partition-made)",
		"workload.HeldByNumber(turns, vacant, replicas-max(partition-1, 0)-made)",
	},
	{
		// A pod beyond replicas is updated, although a pod between two batches keeps its place.
		"clones-surge-beyond-partition", "controllers/cloneset/scale_plan.go",
		"if f.partition > 0 {",
		"if false {",
	},
	{
		// Reserved ordinals count for the partition: a pod too many is updated.
		"ordinals-partition-counts-them", "controllers/statefulset/partition.go",
		"if kept.Has(ordinal) {",
		"if _ = kept; ordinal < s.set.GetOrdinalsStart()+int(s.set.GetPartition()) {",
	},
	{
		// A range that is reserved is taken for its first ordinal.
		"ordinals-range-cut", "apis/apps/v1beta1/statefulset_ordinals.go",
		"return OrdinalRange{First: int(from), Last: int(to)}, true",
		"return OrdinalRange{First: int(from), Last: int(from)}, true",
	},
	{
		// The set counts from 0, wherever it is to start.
		"ordinals-start-ignored", "apis/apps/v1beta1/statefulset_ordinals.go",
		"next    = s.GetOrdinalsStart()",
		"next    = 0",
	},
	{
		// A pod whose ordinal was reserved stays, and is updated with the others.
		"ordinals-reserved-pods-stay", "controllers/statefulset/scope.go",
		"if s.wanted.Has(ordinal) {",
		"if s.wanted.Has(ordinal) || s.set.GetReservedOrdinals().Has(ordinal) {",
	},
	{
		// Nothing makes up for a pod between two batches: it waits for ever.
		"clones-wait-between-batches", "controllers/cloneset/rollout.go",
		"pod.Available || s.isBetweenBatches(pod)",
		"pod.Available",
	},
	{
		// The claims of a pod that was deleted while the manager was not running stay for ever.
		"clones-claims-left", "controllers/cloneset/claims.go",
		"if !ok || pods.Has(pod) || claim.DeletionTimestamp != nil || volumes.IsAway(claim, s.Now) {",
		"if true || !ok || pods.Has(pod) || claim.DeletionTimestamp != nil || volumes.IsAway(claim, s.Now) {",
	},
	{
		// What is derived for the pod itself does not follow its containers.
		"resize-derived-left", "resize/derived.go",
		"case current.Cmp(size) != 0 &&",
		"case false && current.Cmp(size) != 0 &&",
	},
	{
		// What an autoscaler has set is taken for an unfinished resize.
		"resize-of-others-is-ours", "resize/written.go",
		"return entry.Manager == FieldManager && entry.Subresource",
		"return entry.Subresource",
	},
	{
		// A pod that waits for room counts as one that has its size.
		"resize-deferred-is-done", "resize/observe.go",
		"progress := Progress{State: Deferred,",
		"progress := Progress{State: Done,",
	},
	{
		// A pod has the label of a revision whose sizes it never gets, if the manager dies.
		"resize-after-its-label", "controllers/executor/resize.go",
		"body, err := inplace.ResizePatch(move.Pod, move.Step)",
		`if move.Step.Record != nil {
		if err := e.patch(ctx, move); err != nil {
			return err
		}
		pod := *move.Pod
		pod.ResourceVersion, move.Pod, move.Step.Record = "", &pod, nil
	}
	body, err := inplace.ResizePatch(move.Pod, move.Step)`,
	},
	{
		// All pods are resized at a time.
		"resize-not-limited", "inplace/plan.go",
		"case p.resizing >= limit:",
		"case false:",
	},
	{
		// What is to be kept is recreated.
		"resize-keep-evicts", "resize/policy.go",
		"return Recreate\n\t}\n\treturn Keep",
		"return Recreate\n\t}\n\treturn Recreate",
	},
	{
		// Containers restart for their sizes while the pod serves.
		"resize-restarts-in-service", "inplace/change.go",
		"return len(c.Images) > 0 || c.Resize.Restarts()",
		"return len(c.Images) > 0",
	},
	{
		// The new image runs with less than it is to have.
		"resize-growth-not-awaited", "inplace/resize.go",
		"s.observed.resized.State == resize.Done || !s.observed.grewFor(s.target.Template)",
		"true || !s.observed.grewFor(s.target.Template)",
	},
	{
		// What is to shrink when the pod serves again is forgotten.
		"resize-shrinking-forgotten", "inplace/record.go",
		"state.NextContainerResources = change.Shrink.Amounts().Requirements()",
		"state.NextContainerResources = nil",
	},
	{
		// A pod is changed while its claims grow.
		"claims-not-awaited", "inplace/claims.go",
		"step := s.claimsFirst()\n\tif step == nil {",
		"step := s.claimsFirst()\n\tif true || step == nil {",
	},
	{
		// The claims of all pods change at a time.
		"claims-not-limited", "inplace/claims.go",
		"case p.changing >= limit:",
		"case false && p.changing >= limit:",
	},
	{
		// The claims of pods that the partition keeps are changed.
		"claims-of-held-pods", "controllers/statefulset/claims.go",
		"if s.held.Has(ordinal) || s.isStopped() {",
		"if s.isStopped() {",
	},
	{
		// Claims are changed while the set is paused.
		"claims-while-paused", "controllers/statefulset/claims.go",
		"if s.held.Has(ordinal) || s.isStopped() {",
		"if s.held.Has(ordinal) {",
	},
	{
		// Pods of a template that was added stay as they are.
		"claims-added-not-seen", "inplace/claims.go",
		"if target.IgnoresClaims || target.ClaimTemplates == nil {",
		"if true || target.ClaimTemplates == nil {",
	},
	{
		// Nothing says that the server refuses pods.
		"wider-refusal-unsaid", "controllers/engine/conditions.go",
		"appsv1beta1.ReasonFailedCreate, r.Scaling.Errs)",
		"appsv1beta1.ReasonFailedCreate, nil)",
	},
	{
		// What the server refused is not tried again.
		"wider-refusal-is-final", "controllers/workload/requeue.go",
		"len(f.Errs) > 0 }) {\n\t\tr.Within(failureDelay)",
		"len(f.Errs) > 99 }) {\n\t\tr.Within(failureDelay)",
	},
	{
		// An image that admission has rewritten is taken for one to change.
		"wider-rewritten-image-differs", "inplace/restart.go",
		"differs := c.wanted.Image != c.live.image && (c.wanted.Image != c.before || c.pending && !c.alias)",
		"differs := c.wanted.Image != c.live.image",
	},
	{
		// A limit falls below what an autoscaler has made the request.
		"wider-request-above-limit", "resize/compare.go",
		"change = withCounterparts(pod, wish, live, change)",
		"_ = withCounterparts",
	},
	{
		// A pod that has the name of one of the set is taken over, whatever its labels are.
		"hands-labels-ignored", "controllers/workload/adopt.go",
		"owner.GetNamespace(), pods, selected)",
		"owner.GetNamespace(), pods)",
	},
	{
		// A pod that is not the set's and has the name counts as the one that was to be made.
		"hands-taken-name-is-made", "controllers/workload/pods.go",
		"err = explainTaken(p.Client.Create(ctx, pod), pod.Name)",
		"err = client.IgnoreAlreadyExists(p.Client.Create(ctx, pod))",
	},
	{
		// A revision that is not the set's is taken for the one that was to be made.
		"hands-revision-of-others", "controllers/history/history.go",
		"if !metav1.IsControlledBy(existing, owner) {",
		"if false {",
	},
	{
		// What has got the name of an object meanwhile is changed in its place.
		"hands-patch-without-uid", "controllers/workload/metadata.go",
		`map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}`,
		"map[string]any{}",
	},
	{
		// Pods are given to a set that was deleted, and go with it.
		"again-uid-not-confirmed", "controllers/workload/owner.go",
		"current.UID != o.GetUID() || current.DeletionTimestamp != nil",
		"current.DeletionTimestamp != nil",
	},
	{
		// Pods are given back to a set that is being deleted and has just released them.
		"again-deletion-not-confirmed", "controllers/workload/owner.go",
		"current.UID != o.GetUID() || current.DeletionTimestamp != nil",
		"current.UID != o.GetUID()",
	},
	{
		// Pods are taken over before the cache shows that their revisions can be.
		"again-pods-before-revisions", "controllers/workload/adopt.go",
		"if len(found.Pods) == 0 {",
		"if true {",
	},
	{
		// A pod starts on a claim that goes with the set of before.
		"again-claim-that-goes", "controllers/workload/claims.go",
		"case slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool { return owner.IsEarlier(&o) }):",
		"case false:",
	},
	{
		// Claims go with their set, though they are to stay.
		"again-claims-go", "controllers/statefulset/retention.go",
		"case policy.WhenDeleted == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType:",
		`case policy.WhenDeleted != "":`,
	},
}
