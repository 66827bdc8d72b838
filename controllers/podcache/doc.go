// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package podcache configures what the manager keeps in memory of the cluster,
// and how it is found there.
//
// A cluster may have a hundred thousand pods, and the manager keeps all of those
// it watches. So pods and EndpointSlices are trimmed to the fields that some
// decision reads before they enter the cache, and everything is found by an
// index: the children of an owner, the orphans of a namespace, the Services that
// send traffic to a pod. Nothing ever lists a namespace and throws most of it
// away.
//
// Objects from this cache are incomplete. Never write one back whole with
// Update: every field that was trimmed would be removed, or the write refused.
// Write with the narrowest patch instead, and take the answer of the API server
// for what the object is now.
package podcache
