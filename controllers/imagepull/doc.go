// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package imagepull pulls images onto nodes, as ImagePullJobs and ImageListPullJobs say. There is
// no agent on the nodes: on each node of a job a pod has the kubelet pull, see [inplace.Pull].
//
// What has come of a node is in the status of its job: once it is written there, the pod is
// deleted. What is under way is told by the pods. A manager that is new forgets only which pods
// others have deleted, and since when the API server refuses pods.
package imagepull
