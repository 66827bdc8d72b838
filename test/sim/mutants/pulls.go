// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// pullMutants are bugs of images that are pulled before.
var pullMutants = []mutant{
	{
		// Pods are taken out of service while their images are being pulled.
		"pulls-not-awaited", "controllers/executor/pulls.go",
		"if needed == nil || needed.isDone() || !move.Step.PullsImages() {",
		"if needed == nil || true {",
	},
	{
		// A pull that fails is given up, as one that is not answered.
		"pulls-failure-given-up", "controllers/executor/pullknowledge.go",
		"return k.state == inplace.PullFailed || k.state == inplace.PullUnderWay",
		"return k.state == inplace.PullUnderWay",
	},
	{
		// What pulled images stays.
		"pulls-left", "controllers/executor/pullers.go",
		"case puller.DeletionTimestamp == nil:",
		"case false:",
	},
	{
		// An image that is on the node counts for pods that may not use it.
		"pulls-secrets-ignored", "inplace/pull.go",
		"return len(pod.Spec.ImagePullSecrets) == 0 && !p.OtherAccount && !slices.ContainsFunc(",
		"return !slices.ContainsFunc(",
	},
	{
		// A pull whose pod was evicted is waited for, for ever.
		"pulls-evicted", "controllers/executor/pullknowledge.go",
		"if state == inplace.PullRejected && k.state == inplace.PullUnderWay &&",
		"if false &&",
	},
	{
		// A rollout that is stuck pulls onto all nodes, one after the other.
		"pulls-walk", "controllers/executor/pullwants.go",
		"farthest--",
		"",
	},
	{
		// Every node that is full is waited for.
		"pulls-rejected-each", "controllers/executor/pullknowledge.go",
		"return v.noPullers || v.noRejected && pull.state == inplace.PullRejected",
		"return v.noPullers",
	},
	{
		// Any image of the node is taken for the one that is needed.
		"pulls-any-image", "inplace/pull.go",
		"return slices.Contains(known.Names, name)",
		"return len(known.Names) > 0 || slices.Contains(known.Names, name)",
	},
	{
		// One image of several that are there is enough.
		"pulls-one-of-several", "inplace/pull.go",
		"case len(statuses) > 0 && pulled == len(puller.Spec.Containers):",
		"case pulled > 0:",
	},
	{
		// A pod is deleted for an image that cannot be pulled.
		"pulls-deletions-untried", "inplace/view.go",
		"v.Step.SuccessorPull = p.successorPull(v)",
		"_ = p.successorPull(v)",
	},
	{
		// The image of a new pod is tried with what the old one has for the registry.
		"pulls-old-account", "inplace/successorpull.go",
		"As: &revision.Template.account, ",
		"",
	},
	{
		// Kubernetes gets a StatefulSet back for an image that no node has.
		"pulls-given-back", "controllers/native/controller.go",
		"if s.pullsForNewPods() {",
		"if false {",
	},
}
