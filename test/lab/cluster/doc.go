// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is a Kubernetes cluster on one machine, made of the
// programs in package components: which addresses, certificates and
// configuration files they get, in which order they start, and how the whole
// comes up and goes down.
//
// With nodes the cluster is isolated: it lives in namespaces of its own (see
// package host) and is reached over a virtual link. Nodes share its network
// namespace, and so one kube-proxy, but each has an address of its own, and
// PID and mount namespaces, so that containerd, kubelet and pods of a node
// can die and come back together. Pods hang on the network by the ptp plugin:
// every pod is a routed host, also between nodes, without bridges. Without
// nodes the cluster is a set of plain processes on free ports of 127.0.0.1,
// for which no rights are needed.
//
// All of it is derived from the record in the lab's folder, see Lab.
package cluster
