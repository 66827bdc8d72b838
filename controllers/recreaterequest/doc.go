// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package recreaterequest restarts containers of pods, as ContainerRecreateRequests say. There is
// no agent on the nodes: a container is restarted by another spelling of its image, as for a
// restart of a workload.
//
// A request is noted in an annotation of its pod, see [inplace.RecreateRequestOf]. Where a
// controller of ours updates the pod, that one restarts the containers, by the rules of the
// workload: within its budget, out of service, with its hooks. Pods of others are restarted here.
// What has come of a container is in the status of the request, and what was done in the record of
// the pod's updates; a manager that is new forgets nothing.
//
// A reconciliation is about a pod, and all requests about it: one after the other is carried out.
package recreaterequest
