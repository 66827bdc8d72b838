// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// unitMutants are bugs that the tests of their own package find. Each has survived those
// tests once, or those of the simulation.
var unitMutants = []mutant{
	{
		// The snapshot of an attempt that was given up is used for the next one. In a simulation,
		// another step deletes it as soon as the claim tells of no attempt any more.
		"recreate-stale-snapshot", "volumes/recreate/attempt.go",
		"case f.Volume != nil && isOwnSnapshot(f.Snapshot, f.Claim.UID) && f.Snapshot.DeletionTimestamp == nil:\n\t\tstep := act(DeleteSnapshot, ReasonClaimRecreating, \"its snapshot %s is deleted\"",
		"case false:\n\t\tstep := act(DeleteSnapshot, ReasonClaimRecreating, \"its snapshot %s is deleted\"",
	},
	{
		// A claim is deleted before its snapshot can be used. In a simulation, the claim has a
		// finalizer until then, which is waited for as well.
		"recreate-before-ready", "volumes/recreate/facts.go",
		"snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse && ",
		"",
	},
	{
		// Pods that are just made take no place. In a simulation, the places that they fill are
		// taken as vacant ones: only what a pod makes room for that is asked to go differs, for
		// one round.
		"clones-made-take-no-place", "controllers/cloneset/rollout.go",
		"s.partition(), s.scaled.atUpdate)",
		"s.partition(), 0)",
	},
	{
		// A volume that would go with its claim counts as held.
		"hold-ignores-retain", "volumes/recreate/attempt.go",
		"f.Volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain",
		"corev1.PersistentVolumeReclaimRetain != \"\"",
	},
	{
		// A pod that came and went while the manager was down wrote what no snapshot has.
		"blind-period-ignored", "volumes/recreate/attempt.go",
		"case !now.Before(last.Add(blindPeriod)):",
		"case false:",
	},
	{
		// A volume that another claim has got meanwhile is deleted.
		"disposable-of-another", "volumes/recreate/holding.go",
		" && v.Spec.ClaimRef.UID == v.State.ClaimUID",
		"",
	},
	{
		// A claim is made from a snapshot of other data that has the name.
		"barrier-any-snapshot", "volumes/recreate/renewal.go",
		"(!isOwnSnapshot(f.Snapshot, held.State.ClaimUID) || f.Snapshot.DeletionTimestamp != nil)",
		"(f.Snapshot == nil || f.Snapshot.DeletionTimestamp != nil)",
	},
	{
		// The deletion of a claim decides what becomes of the volume of the claim before it.
		"deletion-any-volume", "volumes/recreate/step.go",
		"held != nil && held.State.ClaimUID == f.Claim.UID",
		"held != nil",
	},
	{
		// A claim is recreated although a pod that came meanwhile may have written to it.
		"another-pod-ignored", "volumes/recreate/attempt.go",
		"case f.Pod != nil && !runsItsPod(a) && f.Pod.UID != a.Pod:",
		"case false:",
	},
	{
		// A volume is given back that is deleted as soon as its claim goes.
		"free-ignores-policy", "volumes/recreate/facts.go",
		"v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&\n",
		"v.Spec.PersistentVolumeReclaimPolicy != \"\" &&\n",
	},
	{
		// The attempt on a claim that has lost its volume never ends.
		"unbound-before-attempt", "volumes/recreate/step.go",
		"case f.record().Recreate != nil:\n\t\treturn f.attempt(*f.record().Recreate, now)\n\tcase !f.isBound():\n\t\treturn f.awaitVolume(now)\n",
		"case !f.isBound():\n\t\treturn f.awaitVolume(now)\n\tcase f.record().Recreate != nil:\n\t\treturn f.attempt(*f.record().Recreate, now)\n",
	},
	{
		// An attempt ends early for an error that ends by itself.
		"transient-error-ends", "volumes/recreate/drivererror.go",
		" && !isTransient.MatchString(e.message)",
		"",
	},
	{
		// An attempt ends early for what the driver says of another claim.
		"error-of-another-claim", "volumes/recreate/drivererror.go",
		"event.InvolvedObject.UID == claim",
		"claim != \"\"",
	},
	{
		// A pod that comes to use a claim that waits is seen half a minute later.
		"waits-blindly", "controllers/recreate/patience.go",
		"slices.Values(users)",
		"slices.Values(users[:0])",
	},
	{
		// A claim is deleted while another snapshot of it is taken: it is neither there nor gone.
		"saved-meanwhile", "volumes/recreate/attempt.go",
		"\tif f.isBeingSaved() {",
		"\tif false {",
	},
	{
		// A claim is made empty although there can be a snapshot by now.
		"empty-though-served", "volumes/recreate/attempt.go",
		"\tcase j != nil && j.Source != a.Source:",
		"\tcase false:",
	},
	{
		// A pod is stopped for a claim whose volume a user is deleting.
		"terminating-stops-pod", "volumes/recreate/attempt.go",
		"\tcase f.Volume.DeletionTimestamp != nil:",
		"\tcase false:",
	},
	{
		// A claim that belongs to another controller is deleted.
		"foreign-ignored", "volumes/recreate/attempt.go",
		"\tcase f.Foreign:",
		"\tcase false:",
	},
	{
		// A pod is stopped for what has failed for another claim.
		"failure-stops-pod", "volumes/recreate/attempt.go",
		"\tcase f.Failed != \"\" && runsItsPod(a):",
		"\tcase false:",
	},
	{
		// A claim whose pod is stopped already is given up for the failure of another.
		"failure-ends-stopped", "volumes/recreate/attempt.go",
		"\tcase f.Failed != \"\" && runsItsPod(a):",
		"\tcase f.Failed != \"\":",
	},
	{
		// The snapshot of another client shows that the driver takes snapshots.
		"trial-of-another", "volumes/recreate/trial.go",
		"\tcase f.Trial != nil && !isOwnSnapshot(f.Trial, f.Claim.UID):",
		"\tcase false:",
	},
	{
		// A claim of another client that has the name of the trial is deleted.
		"trial-claim-of-another", "volumes/recreate/trial.go",
		"\tif trial == nil || !isTrialOf(trial, claim) || trial.DeletionTimestamp != nil {",
		"\tif trial == nil || trial.DeletionTimestamp != nil {",
	},
	{
		// The volume of a trial stays where its class retains volumes.
		"trial-volume-retained", "volumes/recreate/trial.go",
		"\tif isRetained {",
		"\tif isRetained && false {",
	},
	{
		// What admission changes in the claim of a trial goes unseen.
		"trial-rewritten", "volumes/recreate/trial.go",
		"\tcase trial != nil && f.rewrittenOnTrial() != \"\":",
		"\tcase false:",
	},
	{
		// A quota that was lowered below what is used lets a claim be deleted that cannot be
		// created again.
		"quota-exceeded-already", "volumes/recreate/room.go",
		"\t\t\tif !limited {",
		"\t\t\tif !limited || want.Sign() <= 0 {",
	},
	{
		// The snapshot of another client is deleted.
		"trial-of-another-dropped", "volumes/recreate/trial.go",
		"\tif !isOwnSnapshot(f.Trial, claim) || f.Trial.DeletionTimestamp != nil {",
		"\tif f.Trial == nil || claim == \"\" || f.Trial.DeletionTimestamp != nil {",
	},
	{
		// What is noted on the volume speaks of another claim when this one is deleted.
		"hold-of-another-claim", "volumes/recreate/attempt.go",
		"\treturn state != nil && state.ClaimUID == f.Claim.UID && state",
		"\treturn state != nil && state",
	},
	{
		// A late write of a dead manager holds the volume for another attempt.
		"hold-of-another-number", "volumes/recreate/attempt.go",
		" && state.Recreate.Number == a.Number &&",
		" &&",
	},
	{
		// The same, from another snapshot.
		"hold-of-another-snapshot", "volumes/recreate/attempt.go",
		" && state.Recreate.Snapshot == a.Snapshot && ",
		" && ",
	},
	{
		// The same, from another volume.
		"hold-of-another-volume", "volumes/recreate/attempt.go",
		" && state.Recreate.Volume == a.Volume &&",
		" &&",
	},
	{
		// A pod with a long grace period leaves its volume no time to be detached.
		"grace-period-forgotten", "volumes/recreate/attempt.go",
		"\treturn a.StartTimestamp.Add(time.Duration(a.GraceSeconds) * time.Second)",
		"\treturn a.StartTimestamp.Time",
	},
	{
		// A claim is saved and deleted while a pod that a user made writes to it.
		"late-user-ignored", "volumes/recreate/attempt.go",
		"\t\tstep = f.giveUp(nil, \"pod \"+f.Users[0]+\" uses it\")",
		"\t\treturn nil",
	},
	{
		// A volume that is held for the second time never gets its reclaim policy back.
		"reclaim-policy-forgotten", "volumes/recreate/claim.go",
		"\tif volume.State != nil {\n\t\tpolicy",
		"\tif false {\n\t\tpolicy",
	},
	{
		// A claim that is to have its volume back asks for what its template starts from.
		"source-of-template-kept", "volumes/recreate/claim.go",
		"\tclaim.Spec.DataSource, claim.Spec.DataSourceRef, claim.Spec.Selector =",
		"\tcopied := claim.DeepCopy()\n\tcopied.Spec.DataSource, copied.Spec.DataSourceRef, copied.Spec.Selector =",
	},
	{
		// A claim asks for two sources, which the API server refuses.
		"second-source-kept", "volumes/recreate/claim.go",
		"\tclaim.Spec.DataSourceRef = nil\n}",
		"}",
	},
	{
		// The held volume of another claim is given to this one.
		"undo-any-volume", "volumes/recreate/preflight.go",
		"\t\tif !held.IsHeldFor(f.Claim.Namespace, f.Claim.Name) || !held",
		"\t\tif !held",
	},
	{
		// The newer volume, which a user is deleting, goes with its claim.
		"undo-loses-own", "volumes/recreate/preflight.go",
		"held.Name == wanted && f.Volume != nil && f.Volume.DeletionTimestamp == nil {",
		"held.Name == wanted && f.Volume != nil {",
	},
	{
		// A claim whose volume goes with it is to be recreated.
		"terminating-is-possible", "volumes/recreate/preflight.go",
		"\tif f.Volume.DeletionTimestamp != nil {",
		"\tif false {",
	},
	{
		// A claim is deleted that others keep: it is neither there nor gone.
		"finalizers-ignored", "volumes/recreate/preflight.go",
		"\t\tif name != \"kubernetes.io/pvc-protection\" && name != beingSavedFinalizer {",
		"\t\tif false {",
	},
	{
		// No claim is recreated, since Kubernetes protects all.
		"protection-is-foreign", "volumes/recreate/preflight.go",
		"\t\tif name != \"kubernetes.io/pvc-protection\" && name != beingSavedFinalizer {",
		"\t\tif name != beingSavedFinalizer {",
	},
	{
		// A note that was lost lets an older volume decide what the claim is made from.
		"number-given-twice", "volumes/recreate/preflight.go",
		"\t\tif volume.IsHeldFor(claim.Namespace, claim.Name) {",
		"\t\tif false {",
	},
	{
		// The volumes of other claims count as attempts of this one.
		"number-of-others", "volumes/recreate/preflight.go",
		"\t\tif volume.IsHeldFor(claim.Namespace, claim.Name) {",
		"\t\tif volume.State != nil {",
	},
	{
		// A container that is to restart for its size counts as done before it has.
		"restart-not-exact", "resize/observe.go",
		"if RestartsFor(pod, field) {\n\t\treturn false\n\t}",
		"",
	},
	{
		// A pod is recreated for an error that the kubelet was about to get over.
		"error-not-awaited", "resize/policy.go",
		"if end := progress.Since.Add(settleTime); now.Before(end) {",
		"if end := progress.Since.Add(settleTime); false {",
	},
	{
		// What the kubelet says of an error is not passed on at first.
		"error-told-late", "resize/observe.go",
		"if running.Reason == corev1.PodReasonError {",
		"if running.Reason == corev1.PodReasonError && !now.Before(written.Add(settleTime)) {",
	},
	{
		// Two pods that are refused for what they are speak for those that are accepted.
		"accepted-ignored", "controllers/executor/verdicts.go",
		"if v.accepted || len(lately) < enoughWitnesses {",
		"if len(lately) < enoughWitnesses {",
	},
	{
		// Pods are taken for what the ReplicaSet of theirs became for the history.
		"native-pods-without-revision", "controllers/native/preserve.go",
		`|| inplace.RevisionOf(pod) != ""`,
		`|| inplace.RevisionOf(pod) == ""`,
	},
}
