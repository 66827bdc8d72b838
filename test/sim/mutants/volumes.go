// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// volumeMutants are such bugs about claims and volumes.
var volumeMutants = []mutant{
	{
		// What has grown is asked to be smaller again.
		"claims-lowered", "volumes/growth.go",
		"case capacity.Cmp(want) >= 0:\n\t\treturn f.settled()\n\tcase f.Claim.Status.Phase",
		"case capacity.Cmp(want) >= 0 && asked.Cmp(want) <= 0:\n\t\treturn f.settled()\n\tcase f.Claim.Status.Phase",
	},
	{
		// A claim that cannot follow holds the image of its pod.
		"claims-blocked-hold-pods", "volumes/claims.go",
		"slices.Concat(c.In(Changing), c.In(UnderWay))",
		"slices.Concat(c.In(Changing), c.In(UnderWay), c.In(Blocked))",
	},
	{
		// A pod that went for its volume comes back before that has grown.
		"claims-pod-back-too-early", "volumes/detach.go",
		"if since.IsZero() || isAtLeast(sizeOf(f.Claim.Status.Capacity), want) {",
		"if true || since.IsZero() || isAtLeast(sizeOf(f.Claim.Status.Capacity), want) {",
	},
	{
		// The manager does not find out that a driver grows what is not in use.
		"claims-in-use-not-seen", "volumes/trouble.go",
		"return strings.Contains(condition.Message, inUseCode)",
		"return false && strings.Contains(condition.Message, inUseCode)",
	},
	{
		// A driver that never answers holds the pod for ever.
		"claims-never-overdue", "volumes/growth.go",
		"case since.IsZero() || !now.Before(since.Add(overduePeriod)):",
		"case false && !now.Before(since.Add(overduePeriod)):",
	},
	{
		// The old volume goes with its claim.
		"recreate-volume-not-held", "controllers/recreate/write.go",
		`spec["persistentVolumeReclaimPolicy"] = corev1.PersistentVolumeReclaimRetain`,
		`_ = spec`,
	},
	{
		// A claim that is being recreated is made empty.
		"recreate-empty-in-flight", "volumes/recreate/renewal.go",
		"held := InFlight(f.Held)\n\tif held == nil {\n\t\treturn f.restore()",
		"held := InFlight(f.Held)\n\tif true {\n\t\treturn f.restore()",
	},
	{
		// The old volume goes before a pod has run on the new one.
		"recreate-released-unproved", "volumes/recreate/holding.go",
		"case f.Pod == nil || !f.Pod.Ready:",
		"case false:",
	},
	{
		// A snapshot is taken while a node still has what was written last.
		"recreate-still-attached", "volumes/recreate/attempt.go",
		"case len(f.Nodes) > 0:",
		"case false:",
	},
	{
		// What others hold a volume with is taken off when we hold it.
		"volumes-others-released", "controllers/recreate/write.go",
		"\treturn volume.Finalizers\n",
		"\tvar kept []string\n\tfor _, name := range volume.Finalizers {\n\t\tif name != \"example.com/backup\" {\n\t\t\tkept = append(kept, name)\n\t\t}\n\t}\n\treturn kept\n",
	},
	{
		// A held volume is forgotten when a user deletes it, and with it what the missing
		// claim is made from.
		"volumes-not-protected", "controllers/recreate/write.go",
		"finalizers(step.Volume, step.State.ProvedTimestamp == nil)",
		"finalizers(step.Volume, false)",
	},
	{
		// A pod is stopped for a claim whose volume is being deleted: it keeps that.
		"volumes-deleted-not-seen", "volumes/recreate/preflight.go",
		"if f.Volume.DeletionTimestamp != nil {\n\t\treturn refuse(ReasonVolumeTerminating",
		"if false {\n\t\treturn refuse(ReasonVolumeTerminating",
	},
}
