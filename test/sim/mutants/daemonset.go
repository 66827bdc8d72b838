// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// daemonMutants are bugs of DaemonSets.
var daemonMutants = []mutant{
	{
		// Pods are updated that the partition keeps.
		"daemons-partition-ignored", "controllers/daemonset/rollout.go",
		"partition = s.partition()",
		"partition = 0",
	},
	{
		// Pods are updated on nodes that are not selected.
		"daemons-selector-ignored", "controllers/daemonset/order.go",
		"if t.order(mark) != isOld || rank(t, selector) > 0 {",
		"if t.order(mark) != isOld || rank(t, selector) >= 0 {",
	},
	{
		// A pod is made while the one before it still ends.
		"daemons-two-on-a-node", "controllers/daemonset/place.go",
		"case len(living) == 0 && n.runs && !leaving:",
		"case len(living) == 0 && n.runs && (!leaving || leaving):",
	},
	{
		// Pods are updated on nodes that are not ready, or are being drained.
		"daemons-updated-while-away", "controllers/daemonset/rollout.go",
		"isAway := whyNotNow(s.known[t.node]) != \"\"",
		"isAway := false",
	},
	{
		// The old pod goes before the new one beside it is available.
		"daemons-surge-goes-early", "controllers/daemonset/place.go",
		"case !podutils.IsPodReady(old), workload.IsHealthy(updated,",
		"case !podutils.IsPodReady(old), true || workload.IsHealthy(updated,",
	},
	{
		// Only time makes a new pod available, and nothing looks again.
		"daemons-surge-not-awaited", "inplace/condemned.go",
		"\t\t\tp.recheckAt(p.availableAt(v))\n",
		"",
	},
	{
		// One pod more than may be is taken out of service.
		"daemons-one-too-many", "controllers/daemonset/rollout.go",
		"MaxUnavailable: max(s.set.GetMaxUnavailable(s.desired), 1),",
		"MaxUnavailable: max(s.set.GetMaxUnavailable(s.desired), 1) + 1,",
	},
	{
		// Pods stay on nodes that are not selected any more.
		"daemons-left-behind", "controllers/daemonset/place.go",
		"case !n.keeps:\n\t\t\tplan.drop(n.pods...)",
		"case !n.keeps:",
	},
}
