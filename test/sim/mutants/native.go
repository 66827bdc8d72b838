// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

// nativeMutants are bugs in what is done with Deployments, StatefulSets and DaemonSets of
// Kubernetes.
var nativeMutants = []mutant{
	{
		// A StatefulSet is released before Kubernetes sees that pods were updated: it deletes them.
		"native-release-not-awaited", "controllers/native/statefulset.go",
		"int(w.Status.UpdatedReplicas) < s.atTarget()",
		"s.atTarget() < 0",
	},
	{
		// The same of a DaemonSet.
		"native-daemons-not-awaited", "controllers/native/daemonset.go",
		"int(w.Status.UpdatedNumberScheduled) < s.atTarget()",
		"s.atTarget() < 0",
	},
	{
		// An update that goes back is released while Kubernetes may still count the pods
		// as they were before.
		"native-return-not-awaited", "controllers/native/seen.go",
		"return left <= 0",
		"return true",
	},
	{
		// A promotion waits for pods that the server refuses to create.
		"native-missing-awaited", "controllers/native/promotion.go",
		" || s.keeper.failure() != nil",
		"",
	},
	{
		// An update of a Deployment goes on before Kubernetes sees the new template of its
		// ReplicaSet.
		"native-keeper-not-observed", "controllers/native/promotion.go",
		"status.ObservedGeneration < s.keeper.Generation || ",
		"",
	},
	{
		// A pod of a Deployment is updated before one of the new template serves.
		"native-new-pod-not-awaited", "controllers/native/scope.go",
		"WaitsFor:             s.waitsFor(),",
		`WaitsFor:             "",`,
	},
	{
		// More pods of a Deployment are out of service than Kubernetes allows.
		"native-budget-rounded-up", "controllers/native/deployment.go",
		"err == nil && more == 0",
		"err == nil && more >= 0",
	},
	{
		// The pod that the hold of a Deployment has made is deleted while it serves.
		"native-new-pod-not-drained", "controllers/native/promotion.go",
		"if s.spec.surges && !s.keeper.isPromoted() && !s.retireOthers(ctx, r) {",
		"if false {",
	},
	{
		// Its drain ends with the hold, a moment before it is deleted.
		"native-new-pod-not-dismissed", "controllers/native/retire.go",
		"if dismissed == 0 {",
		"if true {",
	},
	{
		// Scaling in a hold gives the pods of another ReplicaSet the right to stay.
		"native-keeper-by-size", "controllers/native/surge.go",
		"return rs.Annotations[native.KeeperAnnotation] == string(rs.UID)",
		"return false",
	},
}
