// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs the real controllers in a simulated cluster, where whatever
// may happen does happen: writes that fail or whose answers are lost, caches that
// lag behind, managers that die between two writes, kubelets that are slow or
// gone, and users who change their minds.
//
// Real are the planner, the engine, the controllers and the functions that trim
// and index the cache. Models are what surrounds them, each as small as it can
// be: an API server (server.go, pods.go), the manager's cache and client
// (cache.go, client.go), kubelets (kubelet.go), the controller of EndpointSlices
// (endpoints.go), that of a PodDisruptionBudget with the eviction API (budget.go),
// the garbage collector (garbage.go), who answers lifecycle hooks (hooks.go) and
// users (user.go). What each of them does about the sizes of pods is in a file of its
// own (server_resize.go, kubelet_resize.go, user_resize.go). Where claims have volumes,
// there are drivers of many kinds, with what Kubernetes and their sidecars do about
// claims (storage.go and those that follow it, user_volumes.go); pods write in their
// volumes, so that it can be told where every byte is (storage_disks.go, law_data.go).
// What quotas, policies, webhooks, LimitRanges and autoscalers do besides, and people with
// single objects and with the whole set, is in a wider world (wider.go and those that
// follow it); what it finds again and again in wider_findings.go.
// Nothing runs in parallel and no time passes by itself: all that is left open is
// decided by a source of choices (choices.go), so a run can be repeated to the
// letter, shrunk and kept as a test.
//
// The set is a StatefulSet, a CloneSet (cloneset.go, law_cloneset.go) or a DaemonSet, whose nodes
// are objects (daemonset.go, nodes.go, law_daemonset.go, user_daemonset.go), or a workload of
// Kubernetes itself with its controllers and the admission policies that hold it (native.go and
// those that follow it).
//
// The kubelet is the model that matters most: conformance.go has stories that it
// and a real one play (test/e2e), and what the real one shows, it must be able to.
//
// After each write the invariants of docs/invariants.md are asserted (law.go, law_pod.go,
// law_budget.go, law_resize.go, law_volumes.go).
// When the user and the faults stop, everything must come to rest at what the
// user asked for last. What a run did is told as a story, one line an event.
package sim
