// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemonset drives DaemonSets of the group apps.kruise.io: one pod on each node that the
// template selects, changed in place where the change allows it.
//
// What is done on which node is decided by pure functions: selection says which nodes run a pod,
// planNodes which pods are made and which go, and inplace.MakePlan what happens inside pods.
package daemonset
