// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package host is what a lab needs from the machine it runs on, and what it
// must give back: a slot, Debian packages, namespaces, a network link and
// control groups.
//
// # Namespaces
//
// A lab with real nodes lives in a network, PID and mount namespace of its
// own, and each node of it in a further PID and mount namespace. That is what
// makes it clean:
//
//   - Killing the first process of a PID namespace kills every process in it,
//     whatever state it is in: a whole lab, or a node, which then looks like a
//     machine that lost power.
//   - Mounts of containerd and kubelet, and the network namespaces of pods,
//     vanish with the mount namespace.
//   - Firewall rules, routes, connection tracking, virtual links and ports
//     vanish with the network namespace. kube-proxy's chains have the same
//     names in every lab; here two labs do not see each other's.
//
// The namespaces have no names and no files, so nothing is left of them after
// a crash. Three things are outside of them and are removed by name: one end
// of the virtual link to the host, the control groups, and the slot's folder.
// All three are named after the slot.
//
// # Slots
//
// A slot is a small number that no other lab on the machine has. Addresses
// and names are derived from it. It is held by the folder /run/insitu-lab/N,
// in which a file names the owner, so it can be found and given back even
// when the lab's own folder is gone: see Sweep in package cluster. The folder's
// lock is held by who does that.
package host
