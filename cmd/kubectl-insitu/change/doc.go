// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package change steers workloads: it pauses and promotes their rollouts, restarts their
// containers, goes back in their history and edits their templates.
//
// Every change is a patch of the very fields that differ, made from the object as it was
// read a moment ago and refused by the API server if it is another one by then. So it
// needs the rights to get and to patch the workload, and loses nothing that another client
// writes. A change that is made twice is made once: the second time there is nothing to
// do.
package change
